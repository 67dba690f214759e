"""Comparing examples: which dimensions are dynamic, and what no graph can hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.shapes import compare_examples
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.tensors import DimChoice


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, state: Tensor, scale: float = 1.0) -> Tensor:
        return x + state * scale


def compare(*examples: Example, **choices: DimChoice):
    return compare_examples(TwoInputs(), examples, choices={key.replace("_", "."): one for key, one in choices.items()})


def pair(n: int, *, scale: float | None = None) -> Example:
    args = (torch.ones(n, 4), torch.ones(n, 4))
    return Example(args if scale is None else (*args, scale))


def test_dimensions_that_differ_between_examples_are_dynamic() -> None:
    x, state = compare(pair(1), pair(3))
    assert (x.name, state.name) == ("x", "state")
    assert x.dynamic_dims() == [0]
    assert x.sizes == ((1, 3), (4, 4))


def test_a_choice_of_the_recipe_wins_over_equal_sizes() -> None:
    x, _ = compare(pair(3), x_0=DimChoice.DYNAMIC)
    assert x.dynamic_dims() == [0]


def test_a_choice_for_no_dimension_names_the_dimensions() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(3), x_7=DimChoice.DYNAMIC)
    assert caught.value.problem.code is ErrorCode.RECIPE
    assert "x.0, x.1, state.0" in caught.value.problem.why


def test_a_static_choice_that_the_examples_contradict_is_refused() -> None:
    with pytest.raises(AceError, match="the examples differ"):
        compare(pair(1), pair(2), x_0=DimChoice.STATIC)


def test_plain_values_that_differ_between_examples_are_refused_with_the_reason() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2, scale=1.0), pair(2, scale=2.0))
    assert "'scale' is 1.0 in example 1 and 2.0 in example 2" in caught.value.problem.what


def test_examples_with_other_inputs_are_refused_and_the_missing_one_is_named() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2), Example(kwargs={"x": torch.ones(2, 4)}))
    assert "example 2 has no state" in caught.value.problem.why


def test_every_difference_of_rank_and_type_is_reported_at_once() -> None:
    with pytest.raises(AceError) as caught:
        compare(pair(2), Example((torch.ones(2, 4, 1), torch.ones(2, 4, dtype=torch.float64))))
    assert len(caught.value.problems) == 2
