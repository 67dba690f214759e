"""The capture method dynamo."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.flow import CapturedModel
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.results import CaptureReport
from tests.engine.capture.captures import capture


def capture_by(rung: str, module: nn.Module, examples: list[Any]) -> tuple[CapturedModel, CaptureReport]:
    return capture(module, examples, Recipe(capture=CaptureChoice(rungs=(rung,))))


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
