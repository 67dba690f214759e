"""Explanations of failed traces."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.capture.captures import (
    HoldsScript,
    assert_helpful,
    capture,
    failure,
)


def test_a_branch_on_a_value_is_named_with_its_line_and_its_module() -> None:
    error = failure("data_dependent")
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="if x.mean() > 0:")
    assert "chooses a branch by a tensor's value" in error.problem.what
    assert error.problem.where.endswith(", module blocks.1")


def test_a_scripted_part_is_named_as_the_cause() -> None:
    recipe = Recipe(capture=CaptureChoice(rungs=("export", "export-strict")))
    with pytest.raises(AceError, match="compiled with TorchScript"):
        capture(HoldsScript(), [(torch.ones(2, 4),), (torch.ones(3, 4),)], recipe)


class Cache:
    def __init__(self, keys: Tensor) -> None:
        self.read = lambda: keys


class WithCache(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Cache]:
        return x * 2, Cache(x + 1)


def test_the_class_is_named_and_no_innocent_line_is_blamed() -> None:
    loaded = LoadedModel(module=WithCache().eval(), source=Path(), sha256="")
    examples = [Example((torch.ones(n, 4),)) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",), cache=False))
    with pytest.raises(AceError) as caught:
        capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())
    problem = caught.value.problem
    assert problem.what == "forward() of WithCache returns Cache, an object that torch does not see into"
    assert "use_cache=False" in problem.remedy
    assert problem.where == ""
