"""The eager reference, and warnings about the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests import tiny_models
from tests.engine.capture.captures import (
    capture,
    capture_tiny,
)


@pytest.mark.parametrize(
    ("name", "code"), [("noisy", "random"), ("dropout_left_on", "dropout-in-eval"), ("mutates_input", "mutates-input")]
)
def test_what_may_surprise_later_is_a_warning(name: str, code: str) -> None:
    _, report = capture_tiny(name)
    assert code in [warning.code for warning in report.warnings]


def test_an_argument_that_is_no_tensor_is_said_to_be_fixed() -> None:
    tiny = tiny_models.text_model()
    _, report = capture(tiny.module, [{**example, "scale": 0.5} for example in tiny.examples])
    assert "Input 'scale' is fixed at 0.5 in the graph" in [warning.what for warning in report.warnings]


@pytest.mark.parametrize(("dtype", "codes"), [(torch.bfloat16, ["half-model"]), (torch.float32, [])])
def test_a_model_with_weights_of_16_bits_is_told_what_that_costs(dtype, codes):
    module = nn.Linear(4, 2).to(dtype).eval()
    reporter = Reporter()
    examples = [Example.of(torch.ones(n, 4, dtype=dtype)) for n in (2, 3)]
    recipe = Recipe(capture=CaptureChoice(rungs=("export",)))
    loaded = LoadedModel(module=module, source=Path(), sha256="")
    capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=reporter)
    assert [one.code for one in reporter.warnings] == codes
