"""Letting only the batch stay free."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.capture.batch_only import batch_only
from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CaptureChoice, InputsChoice, Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport
from ace_studio.records.tensors import DimChoice

torch.set_num_threads(1)
BATCH_ONLY = Recipe(capture=CaptureChoice(rungs=("export",), batch_only=True))
PICTURES = [(torch.rand(1, 3, 8, 8),), (torch.rand(2, 3, 12, 16),)]


class Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x).relu().mean((2, 3))


class SlowInSizes(Picture):
    """Endless while it is traced with a free height."""

    def forward(self, x: Tensor) -> Tensor:
        until = time.monotonic() + 60
        while isinstance(x.shape[2], torch.SymInt) and time.monotonic() < until:
            time.sleep(0.005)
        return super().forward(x)


def capture(
    module: nn.Module, recipe: Recipe, examples: list[Any] | None = None, rungs_done: tuple[CaptureAttempt, ...] = ()
) -> tuple[CapturedModel, CaptureReport]:
    captured, report = capture_model(
        LoadedModel(module=module, source=Path(), sha256=""),
        [Example.of(one) for one in examples or PICTURES],
        recipe,
        device=torch.device("cpu"),
        reporter=Reporter(),
        rungs_done=rungs_done,
    )
    return captured, report


def test_the_batch_stays_free_and_the_other_sizes_say_that_they_are_held() -> None:
    module = Picture()
    captured, report = capture(module, BATCH_ONLY)
    dims = captured.inputs[0].dims
    assert [dim.verdict for dim in dims] == ["dynamic", "static", "static", "static"]
    assert [dim.size for dim in dims[1:]] == [3, 8, 8]
    assert "batch_only" in dims[2].reason and "batch_only" in dims[3].reason and "batch_only" not in dims[1].reason
    assert "batch-only" in {warning.code for warning in report.warnings}
    x = torch.rand(7, 3, 8, 8)
    with torch.no_grad():
        assert not difference(module(x), captured.program.module()(x))


def test_sizes_that_move_with_the_batch_stay_free_and_without_a_batch_the_first_free_one_does() -> None:
    class Two(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x.sum(1) + y.sum(1)

    together = [Example.of((torch.rand(n, 3 * n), torch.rand(n, 5))) for n in (2, 3)]
    assert batch_only(Two(), together, Recipe()).held == ("x.1",)
    lengths = [Example.of((torch.rand(4, n), torch.rand(4, n + 1))) for n in (5, 9)]
    found = batch_only(Two(), lengths, Recipe())
    assert found.held == ("y.1",)
    assert [tuple(t.shape for t in one.tensors()) for one in found.examples] == [((4, 5), (4, 6)), ((4, 9), (4, 6))]


def test_a_choice_of_the_recipe_counts_as_free_and_a_fixed_one_stays_fixed() -> None:
    recipe = Recipe(inputs=InputsChoice(dims={"x.0": DimChoice.DYNAMIC, "x.3": DimChoice.DYNAMIC}))
    found = batch_only(Picture(), [Example.of(PICTURES[0])], recipe)
    assert found.recipe.inputs.dims == {"x.0": DimChoice.DYNAMIC, "x.3": DimChoice.STATIC}


def test_a_method_over_its_limit_offers_it_and_with_it_the_capture_is_quick() -> None:
    slow = Recipe(capture=CaptureChoice(rungs=("export",), time_limit_s=0.5))
    with pytest.raises(AceError) as caught:
        capture(SlowInSizes(), slow)
    assert "batch_only = true" in caught.value.problem.remedy and "x.0" in caught.value.problem.remedy
    _, report = capture(SlowInSizes(), BATCH_ONLY)
    assert report.rungs[0].status is AttemptStatus.OK


def test_it_is_not_offered_when_only_the_batch_is_free_and_offered_for_a_method_that_hung() -> None:
    batches = [(torch.rand(n, 3, 8, 8),) for n in (2, 3)]
    error = AceError.of(ErrorCode.TIMEOUT, "it hung", remedy="wait").problem
    hung = (CaptureAttempt(name="export", status=AttemptStatus.TIMEOUT, error=error),)
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    for examples, is_offered in ((batches, False), (PICTURES, True)):
        with pytest.raises(AceError) as caught:
            capture(Picture(), recipe, examples, rungs_done=hung)
        assert ("batch_only" in caught.value.problem.remedy) is is_offered
