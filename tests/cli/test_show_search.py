"""What the command line says of a search for a goal."""

from __future__ import annotations

import pytest

from ace_studio.cli.show import Console, show_search
from ace_studio.records.plan import PlanRule, Precision
from ace_studio.records.results import Result, ResultStatus, SearchStep

FP32 = Precision.FP32


def _result(*steps: SearchStep, chosen: int | None = None) -> Result:
    return Result(status=ResultStatus.OK, fingerprint="", environment={}, search=steps, chosen=chosen)


def test_the_ops_that_the_chosen_plan_keeps_high_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    rules = tuple(PlanRule(match=f"id:conv2d_{number}", precision=FP32) for number in range(10))
    first = SearchStep(target="openvino", low="int8-static", run=0, reused=True)
    mixed = SearchStep(
        target="onnxruntime", low="int8-static", high="fp32", kept_high=10, of=54, rules=rules, run=1, meets=True
    )
    show_search(_result(first, mixed, chosen=1), Console(as_json=False))
    said = " ".join(capsys.readouterr().out.split())
    assert "Search: 2 plans on openvino, onnxruntime, 1 of them known from an earlier run" in said
    assert "Kept at fp32: 10 of 54 ops: conv2d_0," in said
    assert "conv2d_7 and 2 more" in said


def test_nothing_is_said_where_nothing_was_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_search(_result(), Console(as_json=False))
    assert capsys.readouterr().out == ""
