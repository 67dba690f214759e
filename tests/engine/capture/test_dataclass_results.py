"""A model may return a dataclass, and so does what is built from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.capture.dataclass_results import register_dataclasses
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.flat_call import FlatCall
from ace_studio.records.recipe import CaptureChoice, Recipe


@dataclasses.dataclass
class Inner:
    hidden: Tensor


@dataclasses.dataclass
class Scores:
    logits: Tensor
    inner: Inner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        return Scores(y, Inner(y * 2))


def test_a_model_that_returns_nested_dataclasses_is_captured_and_gives_them_back():
    loaded = LoadedModel(module=Net().eval(), source=Path(), sha256="")
    examples = [Example.of(torch.ones(n, 4)) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    captured, _ = capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
    result = FlatCall(captured).unflatten([torch.zeros(2, 3), torch.ones(2, 3)])
    assert isinstance(result, Scores)
    assert isinstance(result.inner, Inner)
    assert result.inner.hidden.sum() == 6


def test_a_value_without_dataclasses_registers_nothing():
    assert not register_dataclasses({"a": [torch.ones(1)]})
