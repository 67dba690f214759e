"""Files to load: good ones of every kind, and ones that would leave a mark if anything in them ran."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import LoadedModel
from ace_studio.engine.load import inspect_file, load_model
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, Problem
from ace_studio.records.recipes.recipe import CalibrationChoice, EvaluateChoice, InputsChoice, ModelChoice, Recipe

NET_SOURCE = '''"""A net in a file of its own."""
import torch
from torch import nn

class Net(nn.Module):
    """Two numbers in, three out."""
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
    def forward(self, x):
        return self.linear(x)

def make_model():
    """Build it."""
    return Net(), [(torch.zeros(1, 2),), (torch.zeros(4, 2),)]

def tracing_inputs():
    return [torch.ones(1, 2)]

def calibration():
    for _ in range(3):
        yield (torch.ones(2, 2),)

def evaluate(predict):
    return float(predict(torch.ones(1, 2)).shape[1])
'''


class Plain(nn.Module):
    """A module that other processes can import by name."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Payload:
    """Unpickling it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


def write_net(folder: Path, name: str = "net.py", source: str = NET_SOURCE) -> Path:
    path = folder / name
    path.write_text(source)
    return path


def write_pt2(path: Path) -> Path:
    torch.export.save(torch.export.export(Plain().eval(), (torch.zeros(1, 2),)), path)
    return path


def write_pt2_with_payload(path: Path, mark: Path) -> Path:
    """A .pt2 whose sample inputs are a pickle that runs code, as an attacker would make it."""
    honest = write_pt2(path.with_name("honest.pt2"))
    evil = path.with_name("evil.pt")
    torch.save(Payload(mark), evil)
    with zipfile.ZipFile(honest) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for info in source.infolist():
            content = evil.read_bytes() if "sample_inputs" in info.filename else source.read(info)
            target.writestr(info.filename, content)
    return path


def write_bare_pickle(path: Path, value: object) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=2))
    return path


def load(
    folder: Path,
    source: str,
    *,
    entry: str = "",
    weights: str = "",
    trusted: bool | set[str] = True,
    tracing: str = "",
    calibration: str = "",
    evaluate: str = "",
    labelled: str = "",
    reporter: Reporter | None = None,
) -> LoadedModel:
    recipe = Recipe(
        model=ModelChoice(source=source, entry=entry, weights=weights),
        inputs=InputsChoice(tracing=tracing),
        calibration=CalibrationChoice(inputs=calibration),
        evaluate=EvaluateChoice(function=evaluate, metric="mse" if labelled else "", data=labelled),
    )
    is_trusted = (lambda _: trusted) if isinstance(trusted, bool) else trusted.__contains__
    return load_model(recipe, folder, is_trusted=is_trusted, reporter=reporter or Reporter())


def problem_of(*args, **kwargs) -> Problem:
    """The headline of the error that loading ends with."""
    try:
        load(*args, **kwargs)
    except AceError as error:
        check_wording(error)
        return error.problem
    raise AssertionError("it loaded")


def check_wording(error: AceError) -> None:
    """What every message must be: no traceback in sight, no advice to run the file, something to do."""
    for problem in error.problems:
        text = problem.as_text()
        assert "Traceback" not in text
        assert "weights_only" not in text
        assert problem.remedy, text


def refusal(path: Path) -> str:
    """The error that looking at a file ends with, as text."""
    with pytest.raises(AceError) as caught:
        inspect_file(path)
    check_wording(caught.value)
    return caught.value.problem.as_text()


def warned(reporter: Reporter) -> dict[str, str]:
    """Code -> what each warning says."""
    return {warning.code: warning.what for warning in reporter.warnings}
