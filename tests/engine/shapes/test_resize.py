"""Examples at other sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import compare_examples, example_at, tracing_example, unseen_sizes
from tests.engine.shapes.test_compare import compare, pair


def test_the_tracing_example_is_the_largest_whose_free_sizes_are_at_least_two() -> None:
    examples = [pair(1), pair(3), pair(2)]
    tracing, is_grown = tracing_example(examples, compare(*examples))
    assert tracing is examples[1]
    assert not is_grown


def test_a_tracing_example_is_grown_by_repeating_content_when_the_examples_are_crossed() -> None:
    class Ids(nn.Module):
        def forward(self, ids: Tensor) -> Tensor:
            return ids

    examples = [Example((torch.arange(256).reshape(1, 256),)), Example((torch.tensor([[7], [8]]),))]
    tracing, is_grown = tracing_example(examples, compare_examples(Ids(), examples, choices={}))
    assert is_grown
    assert tuple(tracing.args[0].shape) == (2, 256)
    assert torch.equal(tracing.args[0][1], torch.arange(256))


def test_resizing_crops_and_repeats_real_content() -> None:
    example = Example((torch.tensor([[5, 6, 7]]),))
    assert example_at(example, {(0, 1): 5}).args[0].tolist() == [[5, 6, 7, 5, 6]]
    assert example_at(example, {(0, 1): 2}).args[0].tolist() == [[5, 6]]


def test_masks_are_stretched_so_that_padding_stays_at_the_end_of_a_row() -> None:
    example = Example((torch.tensor([[False, False, True]]),))
    assert example_at(example, {(0, 1): 6}).args[0].tolist() == [[False] * 4 + [True] * 2]
    assert example_at(example, {(0, 1): 2}).args[0].tolist() == [[False, False]]
    triangle = Example((torch.ones(3, 3, dtype=torch.bool).triu(1),))
    grown = example_at(triangle, {(0, 0): 6, (0, 1): 6}).args[0]
    assert not grown.diagonal().any()
    assert grown[0].tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("seen", "low", "high", "first"),
    [((1, 2), 1, None, 3), ((1, 16), 1, None, 9), ((224, 320), 1, None, 256), ((1, 512), 1, 512, 257), ((5,), 1, 5, 4)],
)
def test_unseen_sizes_stay_affordable_and_keep_common_factors(
    seen: tuple[int, ...], low: int, high: int | None, first: int
) -> None:
    assert next(unseen_sizes(seen, low=low, high=high)) == first


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=5), st.integers(1, 10), st.integers(0, 3000))
def test_unseen_sizes_are_new_and_inside_the_range(seen: list[int], low: int, room: int) -> None:
    sizes = list(unseen_sizes(seen, low=low, high=low + room))
    assert all(low <= size <= low + room and size not in seen for size in sizes)
    assert len(set(sizes)) == len(sizes)
