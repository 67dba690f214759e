"""The capture method dynamo."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.engine.capture.captures import capture_by


class TiedInPython(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if x.shape[0] != y.shape[0] * 2:
            return x.sum(1)
        return x.sum(1) + 1


def test_a_relation_between_sizes_that_python_asked_for_stays_a_relation() -> None:
    examples = [(torch.ones(2 * n, 3), torch.ones(n, 3)) for n in (2, 3)]
    captured, _ = capture_by("dynamo", TiedInPython(), examples)
    assert all(x.shape[0] == 2 * y.shape[0] for x, y in (example.tensors() for example in captured.unseen))
    assert captured.unseen
    with pytest.raises(AssertionError, match="Guard failed"):
        captured.program.module()(torch.ones(5, 3), torch.ones(3, 3))
