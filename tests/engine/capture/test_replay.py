"""Playing a traced graph as the user's module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.engine.capture.captures import capture_by


class GivesBack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor, *, scale: float = 2.0) -> dict[str, Any]:
        y = x * scale + self.weight
        return {"again": x, "rows": y.shape[0], "two": 2, "nested": [y, (y.sum(), None)], "weight": self.weight}


@pytest.mark.parametrize("rung", ["dynamo", "fx"])
def test_inputs_weights_sizes_and_constants_among_the_results_come_back(rung: str) -> None:
    captured, _ = capture_by(rung, GivesBack(), [{"x": torch.ones(n, 3), "scale": 3.0} for n in (2, 5)])
    result = captured.program.module()(x=torch.ones(7, 3), scale=3.0)
    assert result["rows"] == 7
    assert result["two"] == 2
    assert result["nested"][1][1] is None
    assert torch.equal(result["again"], torch.ones(7, 3))
