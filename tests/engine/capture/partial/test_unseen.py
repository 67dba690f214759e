"""Examples of a whole model at unseen sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ace_studio.engine.capture.partial.capture import unseen_examples
from ace_studio.engine.capture.reference import run_reference
from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import Recipe


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if len(x) > 5:
            raise ValueError("too many")
        return x + y


def unseen(*sizes: int) -> list[tuple[int, int]]:
    examples = [Example((torch.ones(size), torch.ones(size))) for size in sizes]
    found = unseen_examples(run_reference(Sum(), examples, Recipe(), Reporter()))
    for example, result in found:
        assert torch.equal(result, example.args[0] + example.args[1])
    return [tuple(len(tensor) for tensor in example.tensors()) for example, _ in found]


def test_equal_sizes_stay_equal_and_what_forward_refuses_is_left_out() -> None:
    sizes = unseen(2, 4)
    assert sizes and all(x == y <= 5 and x not in (2, 4) for x, y in sizes)


def test_without_a_free_size_there_is_nothing_to_try() -> None:
    assert unseen(3) == []
