"""Rows that the captured graph does not accept: which size violates which guard."""

from __future__ import annotations

import pytest

from ace_studio.gui.panels.shapes.faults import refused_rows, size_faults
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimFinding, DimVerdict, TensorSpec
from tests.gui.shape_findings import dims_of


def dynamic(index, **more):
    return DimFinding(index=index, verdict=DimVerdict.DYNAMIC, size=4, symbol="s0", **more)


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        (
            DimFinding(index=0, verdict=DimVerdict.STATIC, size=3),
            "the graph is fixed to size 3 here: trace again with this row",
        ),
        (dynamic(0, min=8), "the graph allows only s0 ≥ 8"),
        (dynamic(0, max=4), "the graph allows only s0 ≤ 4"),
        (dynamic(0, equal_to="x.1"), "the graph needs the same size as x.1, which is 7 here"),
        (dynamic(0, min=2, max=64), ""),
    ],
)
def test_a_size_that_breaks_a_guard_is_named_with_the_guard(dim, words):
    row = {"x": TensorSpec(shape=(5, 7))}
    assert size_faults(row, dims_of(dim)).get("x.0", "") == words


def test_rows_that_no_graph_took_say_which_method_refused_them_and_why():
    refusal = Problem(code=ErrorCode.WRONG_CAPTURE, what="forward() takes another path on example 2", why="x.0 != 3")
    rungs = (
        CaptureAttempt(name="export", status=AttemptStatus.WRONG, error=refusal, refused_example=2),
        CaptureAttempt(name="fx", status=AttemptStatus.FAILED),
    )
    assert refused_rows(rungs) == {1: "export: forward() takes another path on example 2. x.0 != 3"}
    assert refused_rows((*rungs, CaptureAttempt(name="dynamo", status=AttemptStatus.OK))) == {}
