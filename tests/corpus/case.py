"""The corpus of models that misbehave: one table per theme, each case with its source and its expected outcome."""

import textwrap
import tomllib
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records import messages
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.results import RunStatus

FOLDER = Path(__file__).parent / "models"
HEAD = """import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x)


class Net(Small):
    pass


def inputs():
    made = torch.Generator().manual_seed(1)
    return [(torch.randn(2, 4, generator=made),), (torch.randn(3, 4, generator=made),)]

"""
MARK = "# here"
"""Comment at the line that a message must name."""
QUICK = """
[capture]
cache = false
[measure]
threads = 1
rounds = 2
profile = false
[targets]
names = ["eager"]
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One misbehaving model, and how a job with it must end."""

    name: str
    source: str = ""
    """The file, below `HEAD` unless ``raw``."""
    body: str = ""
    """Instead of ``source``: the lines of forward."""
    raw: bool = False
    encoding: str = "utf-8"
    replace: dict[str, str] | None = None
    entry: str = "Net"
    action: str = "trace"
    recipe: str = ""
    weights: str = ""
    """Code that writes the state dict to ``path``."""
    file: str = ""
    """Code that writes the model file to ``path``, instead of ``source``."""
    file_name: str = "model.py"
    slow: bool = False
    kills: bool = False
    """Whether the engine process ends."""
    spoils: bool = False
    """Whether it changes the process, so that the witness has to run after it."""
    exit: int = 0
    """Exit code of the command line."""
    code: str = ""
    """`ErrorCode` of the headline; empty if the job must succeed."""
    words: tuple[str, ...] = ()
    """What the message must say."""
    warns: tuple[str, ...] = ()
    """Codes of warnings that must come."""

    def text(self) -> str:
        """The source with what every file begins with."""
        if self.raw:
            return self.source
        if self.body:
            method = "def forward(self, x):\n" + textwrap.indent(self.body.strip(), "    ")
            return HEAD + "\nclass Net(Small):\n" + textwrap.indent(method, "    ") + "\n"
        return HEAD + self.source

    def line(self) -> int:
        """Number of the marked line; 0 without one."""
        lines = self.text().split("\n")
        return next((number for number, line in enumerate(lines, 1) if MARK in line), 0)


@dataclass
class Outcome:
    """How a job ended."""

    problems: tuple[Problem, ...]
    warnings: dict[str, str]
    log: list[str]
    events: list[Any]

    @property
    def code(self) -> str:
        return self.problems[0].code.value if self.problems else ""

    @property
    def text(self) -> str:
        return "\n".join(one.as_text() for one in self.problems)


def cases(theme: str) -> list[Case]:
    """The cases of a table."""
    rows = tomllib.loads((FOLDER / f"{theme}.toml").read_text("utf-8"))["case"]
    return [
        Case(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}) for row in rows
    ]


def write(case: Case, folder: Path) -> None:
    """Write the files of a case and its recipe."""
    path = folder / case.file_name
    if case.file:
        write_file(case.file, path)
        tables = f'format = 1\n[model]\nsource = "{path.name}"\n'
    else:
        text = case.text()
        for old, new in (case.replace or {}).items():
            text = text.replace(old, new)
        path.write_bytes(text.encode(case.encoding))
        tables = f'format = 1\n[model]\nsource = "{path.name}"\nentry = "{case.entry}"\n'
        if case.weights:
            write_file(case.weights, folder / "weights.pt")
            tables += 'weights = "weights.pt"\n'
        tables += '[inputs]\ntracing = "inputs"\n'
    plan = "" if "[plan]" in case.recipe else '[plan]\ndefault = "fp32"\n'
    (folder / "recipe.toml").write_text(tables + QUICK + plan + case.recipe, encoding="utf-8")


def write_file(code: str, path: Path) -> None:
    """Run the code that writes a file."""
    import torch

    names = {"torch": torch, "path": path, "change_in_zip": change_in_zip, "write_onnx": write_onnx}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, and its files are still opened
        exec(textwrap.dedent(code), names)


def change_in_zip(path: Path, old: bytes, new: bytes, *, member: str = "") -> None:
    """Replace bytes in the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    found = 0
    with zipfile.ZipFile(path, "w") as archive:
        for name, held in content.items():
            is_changed = name.endswith(member) and old in held
            found += is_changed
            archive.writestr(name, held.replace(old, new) if is_changed else held)
    assert found, f"{old!r} is not in {path.name}"


def write_onnx(path: Path, *, opset: int = 18, op: str = "Relu", ir: int = 9) -> None:
    """Write a model of one operator."""
    import onnx
    from onnx import TensorProto, helper

    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    onnx.save(model, path)


def run(case: Case, folder: Path, executor: WorkerExecutor) -> Outcome:
    """Run the job of a case, whose files are in the folder."""
    recipe = read_recipe(folder / "recipe.toml")
    if case.action == "inspect":
        request: messages.AnyRequest = messages.InspectRequest(job=case.name, path=str(folder / case.file_name))
    elif case.action == "run":
        request = messages.RunRequest(
            job=case.name, recipe=recipe, folder=str(folder), trust_all=True, output=str(folder / "out")
        )
    else:
        request = messages.TraceRequest(job=case.name, recipe=recipe, folder=str(folder), trust_all=True)
    outcome = Outcome((), {}, [], [])
    for event in executor.run(request):
        outcome.events.append(event)
        match event:
            case messages.JobFailed(problems=problems):
                outcome.problems = problems
            case messages.WorkerLost(problem=problem):
                outcome.problems = (problem,)
            case messages.JobFinished(result=result) if result is not None:
                outcome.problems = (result.error,) if result.error else ()
                outcome.problems += tuple(
                    one.error for one in result.runs if one.status is RunStatus.FAILED and one.error
                )
                outcome.warnings |= {one.code: one.what for one in result.warnings}
            case messages.ModelCaptured(capture=capture):
                outcome.warnings |= {one.code: one.what for one in capture.warnings}
            case messages.LogLine(text=text):
                outcome.log.append(text)
    return outcome
