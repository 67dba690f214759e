"""Arguments that end up in forward's ``**kwargs`` are inputs like all others: named, compared, dynamic."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from ace_studio.records.tensors import DimVerdict


class Scaled(nn.Module):
    def forward(self, x: Tensor, **extra: Tensor) -> Tensor:
        return x * extra["scale"] + (1.0 if extra.get("flag") else 0.0)


def decorated(function):
    @functools.wraps(function)
    def call(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return call


class Decorated(nn.Module):
    @decorated
    def forward(self, x: Tensor, bias: Tensor | None = None, **extra: Tensor) -> Tensor:
        return x * extra["scale"] if bias is None else x + bias


def capture(module: nn.Module, rung: str) -> CapturedModel:
    examples = [Example(args=(torch.ones(n, 4),), kwargs={"scale": torch.ones(n, 1), "flag": True}) for n in (2, 3)]
    loaded = LoadedModel(module=module.eval(), source=Path(), sha256="")
    recipe = Recipe(capture=CaptureChoice(rungs=(rung,), cache=False))
    return capture_model(loaded, examples, recipe, device=torch.device("cpu"), reporter=Reporter())[0]


@pytest.mark.parametrize(
    ("kind", "rung"),
    [(Decorated, rung) for rung in ("export", "export-strict", "dynamo", "fx")] + [(Scaled, "export")],
)
def test_an_argument_in_kwargs_is_named_and_dynamic_on_every_method(kind, rung: str) -> None:
    captured = capture(kind(), rung)
    x, scale = captured.inputs
    assert (x.name, scale.name) == ("x", "scale")
    assert x.dims[0].verdict is scale.dims[0].verdict is DimVerdict.DYNAMIC
    unseen = Example(args=(torch.randn(5, 4),), kwargs={"scale": torch.randn(5, 1), "flag": True})
    result = unseen.call(captured.program.module())
    torch.testing.assert_close(result, unseen.call(captured.module))
    assert len(FlatCall(captured).flatten(unseen.args, unseen.kwargs)) == 2


@pytest.mark.parametrize("kind", [Scaled, Decorated])
def test_forward_has_its_own_signature_again_afterwards(kind) -> None:
    before = str(inspect.signature(kind.forward))
    capture(kind(), "export")
    assert str(inspect.signature(kind.forward)) == before
    assert "__signature__" not in vars(kind.forward)
