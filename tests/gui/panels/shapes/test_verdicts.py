"""The verdict on a dimension in a few words, for the chip below its column."""

from __future__ import annotations

import pytest

from ace_studio.gui.panels.shapes.verdicts import chip_of, next_choice
from ace_studio.records.tensors import DimChoice, DimFinding, DimVerdict, InputFinding, TensorSpec
from tests.gui.shape_findings import ROW, SIZE_0


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
        (finding(DimVerdict.UNKNOWN), "only ever 1: try another size"),
    ],
)
def test_a_verdict_is_said_in_a_few_words(found, text):
    assert chip_of(SIZE_0, [ROW], found, dims={}).text == text


def test_before_a_trace_the_chip_says_what_the_examples_let_expect():
    rows = [{"x": TensorSpec(shape=(size,))} for size in (2, 5)]
    assert chip_of(SIZE_0, rows, [], dims={}).text == "will be dynamic"
    assert chip_of(SIZE_0, rows[:1], [], dims={}).text == "will be static"
    assert "another size" in chip_of(SIZE_0, [ROW], [], dims={}).text
    assert chip_of(SIZE_0, rows, [], dims={"x.0": DimChoice.STATIC}).text == "static (asked)"


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
