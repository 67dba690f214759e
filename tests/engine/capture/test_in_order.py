"""The order of capture methods."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import in_order
from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError
from ace_studio.records.messages import AttemptEnded
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.results import AttemptStatus
from ace_studio.records.tensors import DimVerdict
from tests import tiny_models
from tests.engine.capture.captures import KeptCaptures, capture, capture_tiny, dims


def test_the_strict_method_rescues_what_the_first_cannot_and_the_first_says_why() -> None:
    captured, report = capture_tiny("square_root_of_length")
    assert report.rung == "export-strict"
    first = report.rungs[0]
    assert first.status is AttemptStatus.FAILED
    assert first.error is not None
    assert "fixes a size" in first.error.what
    assert "x.0" in first.error.what
    assert "math.sqrt(len(x))" in first.error.why
    assert dims(captured)["x.0"].verdict is DimVerdict.DYNAMIC


def test_subgraphs_are_not_looked_for_where_the_whole_graph_was_found(kept: KeptCaptures) -> None:
    captured, report = kept.of("mlp")
    assert report.rungs[-1].name == "partial"
    assert report.rungs[-1].status is AttemptStatus.SKIPPED
    assert report.rungs[-1].reason == "an earlier method gave a graph that equals eager"
    assert isinstance(captured, CapturedModel)
    assert not report.pieces


def test_every_method_is_reported_as_an_event() -> None:
    events: list[Any] = []
    tiny = tiny_models.mlp()
    capture(tiny.module, tiny.examples, reporter=Reporter(events.append, job="j1"))
    tried = [event for event in events if isinstance(event, AttemptEnded)]
    assert [event.outcome.name for event in tried] == list(Recipe().capture.rungs)
    assert {event.job for event in tried} == {"j1"}


class AsksForItsSize(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] == 2 else x + 1


@pytest.mark.parametrize("compares", [False, True])
def test_methods_are_left_out_after_long_on_one_path_with_the_reason_but_not_where_they_are_compared(
    compares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_order, "_MOST_ON_PATHS_S", 0.0)
    events: list[Any] = []
    recipe = Recipe(capture=CaptureChoice(rungs=("export", "fx"), compare_rungs=compares))
    with pytest.raises(AceError):
        capture(AsksForItsSize(), [torch.ones(2, 3), torch.ones(5, 3)], recipe, Reporter(events.append))
    outcomes = [event.outcome for event in events if isinstance(event, AttemptEnded)]
    assert [one.name for one in outcomes] == ["export", "fx"]
    assert (outcomes[1].status is AttemptStatus.SKIPPED) is not compares
    assert ("conditions on sizes" in outcomes[1].reason) is not compares
