"""The order of capture methods."""

from __future__ import annotations

from typing import Any

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import AttemptEnded
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import AttemptStatus
from ace_studio.records.tensors import DimVerdict
from tests import tiny_models
from tests.engine.capture.captures import (
    capture,
    capture_tiny,
    dims,
)


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


def test_subgraphs_are_not_looked_for_where_the_whole_graph_was_found() -> None:
    captured, report = capture_tiny("mlp")
    assert report.rungs[-1].name == "partial"
    assert report.rungs[-1].status is AttemptStatus.SKIPPED
    assert isinstance(captured, CapturedModel)
    assert not report.pieces


def test_every_method_is_reported_as_an_event() -> None:
    events: list[Any] = []
    tiny = tiny_models.mlp()
    capture(tiny.module, tiny.examples, reporter=Reporter(events.append, job="j1"))
    tried = [event for event in events if isinstance(event, AttemptEnded)]
    assert [event.outcome.name for event in tried] == list(Recipe().capture.rungs)
    assert {event.job for event in tried} == {"j1"}
