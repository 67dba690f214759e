"""Captures of small models, for the tests of capturing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.results import CaptureReport
from ace_studio.records.tensors import DimFinding
from tests import tiny_models

torch.set_num_threads(1)
CPU = torch.device("cpu")


DEFAULT = Recipe()


def by(*rungs: str) -> Recipe:
    """A recipe with these capture methods."""
    return Recipe(capture=CaptureChoice(rungs=rungs))


def capture(
    module: nn.Module, examples: list[Any], recipe: Recipe = DEFAULT, reporter: Reporter | None = None
) -> tuple[CapturedModel, CaptureReport]:
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    given = [Example.of(example) for example in examples]
    return capture_model(loaded, given, recipe, device=CPU, reporter=reporter or Reporter())


def capture_tiny(name: str, recipe: Recipe = DEFAULT) -> tuple[CapturedModel, CaptureReport]:
    tiny = getattr(tiny_models, name)()
    return capture(tiny.module, tiny.examples, recipe)


class KeptCaptures:
    """Captures of tiny models, each made once in a process: tests read them, and none may change one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """A capture cache, in which they are found again."""
        self._made: dict[tuple[str, tuple[str, ...]], tuple[CapturedModel, CaptureReport]] = {}

    def of(self, name: str, *rungs: str) -> tuple[CapturedModel, CaptureReport]:
        """The capture by these methods, or by those of a recipe that names none."""
        if (name, rungs) not in self._made:
            self._made[name, rungs] = self.again(name, *rungs)
        return self._made[name, rungs]

    def again(self, name: str, *rungs: str, reporter: Reporter | None = None) -> tuple[CapturedModel, CaptureReport]:
        """The same capture once more, from the cache if it is there."""
        tiny = getattr(tiny_models, name)()
        loaded = LoadedModel(module=tiny.module, source=Path(), sha256=name)
        examples = [Example.of(example) for example in tiny.examples]
        recipe = by(*rungs) if rungs else DEFAULT
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ACE_STUDIO_CACHE", str(self.folder))
            return capture_model(loaded, examples, recipe, device=CPU, reporter=reporter or Reporter())


WHOLE = by("export", "export-strict", "dynamo", "fx")
"""Only the rungs that give the whole graph."""


def failure(name: str, recipe: Recipe = WHOLE) -> AceError:
    with pytest.raises(AceError) as caught:
        capture_tiny(name, recipe)
    return caught.value


def dims(captured: CapturedModel) -> dict[str, DimFinding]:
    return {f"{one.name}.{dim.index}": dim for one in captured.inputs for dim in one.dims}


# --- bad input: each with cause, remedy, place, and exit code 3 ---


def assert_helpful(error: AceError, *, code: ErrorCode, line: str) -> None:
    problem = error.problem
    assert problem.code is code
    assert problem.exit_code is ExitCode.NOT_CAPTURED
    assert problem.why
    assert problem.remedy
    if line:
        file, _, rest = problem.where.partition(":")
        number = int(rest.partition(",")[0])
        assert line in Path(file).read_text().splitlines()[number - 1]
    spoken = f"{problem.what} {problem.why} {problem.remedy}".lower()
    for word in ("dynamo", "symnode", "faketensor", "guard", "traceback", "torch._"):
        assert word not in spoken


class HoldsScript(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.jit.script(nn.Linear(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


def capture_by(rung: str, module: nn.Module, examples: list[Any]) -> tuple[CapturedModel, CaptureReport]:
    return capture(module, examples, by(rung))
