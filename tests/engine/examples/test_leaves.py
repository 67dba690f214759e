"""Names of leaves."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.leaves import (
    describe,
    forward_parameters,
    is_same_value,
    named_leaves,
    positions_below,
    resized,
    tensor_paths,
)
from ace_studio.engine.flow import Example


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], states: list[Tensor]) -> Tensor:
        return batch["ids"] + states[0] + states[1]


def test_leaves_are_named_as_forward_names_them_and_in_the_order_of_the_tensors() -> None:
    example = Example(({"ids": torch.ones(1)},), {"states": [torch.ones(2), torch.ones(3)]})
    leaves = named_leaves(example, forward_parameters(Nested()))
    assert [leaf.name for leaf in leaves] == ["batch.ids", "states.0", "states.1"]
    assert [leaf.value.shape for leaf in leaves] == [tensor.shape for tensor in example.tensors()]


def test_what_is_passed_by_position_to_variadic_arguments_is_numbered() -> None:
    class Variadic(nn.Module):
        def forward(self, first: Tensor, *others: Tensor) -> Tensor:
            return sum(others, first)

    example = Example((torch.ones(1), torch.ones(2), torch.ones(3)))
    leaves = named_leaves(example, forward_parameters(Variadic()))
    assert [leaf.name for leaf in leaves] == ["first", "others.0", "others.1"]


def test_tensors_of_a_result_have_paths_and_a_path_stands_for_all_below_it() -> None:
    result = {"logits": torch.ones(1), "states": [torch.ones(2), (torch.ones(3), "text")]}
    paths = [path for path, _ in tensor_paths(result)]
    assert paths == ["logits", "states.0", "states.1.0"]
    assert positions_below(paths, "states") == [1, 2]
    assert positions_below(paths, "state") == []
    assert [path for path, _ in tensor_paths(torch.ones(1))] == ["0"]


def test_an_example_is_described_with_types_and_sizes() -> None:
    example = Example(({"ids": torch.ones(2, 3)}, [torch.ones(()).long()]))
    assert describe(example, forward_parameters(Nested())) == "batch.ids float32 2x3, states.0 int64 scalar"


def test_values_whose_comparison_is_no_truth_are_different() -> None:
    array = torch.ones(2).numpy()
    assert is_same_value(1.0, 1.0) and not is_same_value(1, 1.0) and not is_same_value(array, array)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_an_empty_tensor_grows_with_zeros_and_shrinks_to_nothing(dtype) -> None:
    empty = torch.ones(2, 0, 3, dtype=dtype)
    assert resized(empty, 1, 4).equal(torch.zeros(2, 4, 3, dtype=dtype))
    assert resized(empty, 0, 5).shape == (5, 0, 3)
    assert resized(torch.ones(2, 3, dtype=dtype), 1, 0).shape == (2, 0)
