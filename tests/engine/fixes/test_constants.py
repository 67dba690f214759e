"""A call that gives the same number on every example becomes a constant."""

from typing import Any

import pytest
import torch

from ace_studio.engine.fixes import CannotRewriteError, noting
from ace_studio.records.fixes import FixKind
from tests.engine.fixes.branches import found

VALUES = """
def forward(self, x):
    n, m = int(x.max().item()), len(x)  # here
    return x[:, : n] * m
"""


def test_values_are_noted_and_written_as_constants(tmp_path):
    calls = found(tmp_path, VALUES, FixKind.CONSTANT).values
    assert calls is not None and calls.words == "`int(x.max().item())`, `len(x)`"
    assert "__ace_studio_note__(0, int(x.max().item())), __ace_studio_note__(1, len(x))" in calls.instrumented()
    assert "n, m = 3, 2  # here" in calls.with_constants([[3, 3], [2]])


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ([[3, 4], [2]], "not the same on all examples: 3, 4"),
        ([[3], []], "`len(x)` was not reached"),
        ([[torch.ones(2)], [2]], "no plain number, but Tensor"),
        ([[float("nan")], [2]], "no way to be written"),
    ],
)
def test_a_value_that_is_no_constant_is_refused(tmp_path, seen, why):
    calls = found(tmp_path, VALUES, FixKind.CONSTANT).values
    assert calls is not None
    with pytest.raises(CannotRewriteError) as caught:
        calls.with_constants(seen)
    assert why in str(caught.value)


def test_the_hook_gives_back_what_it_notes():
    seen: list[list[Any]] = [[], []]
    note = noting(seen)
    assert (note(1, 5), note(0, 2.5), seen) == (5, 2.5, [[2.5], [5]])
