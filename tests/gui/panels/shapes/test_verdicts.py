"""The verdict on a dimension in a few words, for the chip below its column."""

import pytest

from ace_studio.gui.panels.shapes.verdicts import chip_of, next_choice, refused_rows, size_faults
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding, TensorSpec
from tests.gui.shape_findings import ROW, SIZE_0, dims_of


def finding(verdict, **more):
    dim = DimFinding(index=0, verdict=verdict, size=3, **more)
    return [InputFinding(name="x", dtype="float32", dims=(dim,))]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (finding(DimVerdict.STATIC), "static 3"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", min=2, max=512), "dynamic s0 in [2, 512]"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", min=2), "dynamic s0 ≥ 2"),
        (finding(DimVerdict.DYNAMIC, symbol="s0", equal_to="ids.1"), "equal to ids.1"),
        (finding(DimVerdict.UNKNOWN), "only ever 1"),
    ],
)
def test_a_verdict_is_said_in_a_few_words(found, text):
    assert chip_of(SIZE_0, [ROW], found, dims={}).text == text


def test_before_a_trace_the_chip_says_what_the_examples_let_expect():
    rows = [{"x": TensorSpec(shape=(size,))} for size in (2, 5)]
    assert chip_of(SIZE_0, rows, [], dims={}).text == "will be dynamic"
    assert chip_of(SIZE_0, rows[:1], [], dims={}).text == "will be static"
    assert "Another size" in chip_of(SIZE_0, [ROW], [], dims={}).tip
    assert chip_of(SIZE_0, rows, [], dims={"x.0": DimChoice.STATIC}).text == "static (asked)"


def test_a_size_that_is_only_ever_1_is_no_warning_since_a_layer_may_fix_it():
    assert chip_of(SIZE_0, [ROW], finding(DimVerdict.UNKNOWN), dims={}).mood == "plain"
    assert chip_of(SIZE_0, [ROW], [], dims={}).mood == "asked"


def test_choices_cycle_back_to_auto():
    assert [next_choice(None), next_choice(DimChoice.DYNAMIC), next_choice(DimChoice.STATIC)] == [
        DimChoice.DYNAMIC,
        DimChoice.STATIC,
        DimChoice.AUTO,
    ]


def test_static_is_said_once_when_it_was_asked_for():
    assert chip_of(SIZE_0, [ROW], finding(DimVerdict.STATIC), dims={"x.0": DimChoice.STATIC}).text == "static 3"
    asked = chip_of(SIZE_0, [ROW], finding(DimVerdict.STATIC), dims={"x.0": DimChoice.DYNAMIC})
    assert asked.text == "static 3 (dynamic asked)"


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
