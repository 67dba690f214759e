"""Weights that are computed at every call become weights; the module gives the same numbers."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, spectral_norm

from ace_studio.engine.load.written_weights import write_out_weights


class LowRank(nn.Module):
    """Adds a product of two narrow matrices to a weight, as LoRA does."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(4, 1)), nn.Parameter(torch.randn(1, 4))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down


class Noisy(nn.Module):
    """No parametrization that has a value of its own."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight + torch.randn_like(weight)


def low_rank(layer: nn.Module) -> nn.Module:
    return parametrize.register_parametrization(layer, "weight", LowRank())


def old_weight_norm(layer: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.utils.weight_norm(layer)


WAYS = (parametrizations.weight_norm, parametrizations.spectral_norm, old_weight_norm, spectral_norm, low_rank)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.__module__.split('.')[-1]}.{way.__name__}")
def test_a_computed_weight_is_written_out_and_the_numbers_stay(way):
    torch.manual_seed(0)
    module = nn.Sequential(way(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 2)).eval()
    x = torch.randn(3, 4)
    before = module(x)
    assert write_out_weights(module) == ["0.weight"]
    assert isinstance(module[0].weight, nn.Parameter)
    assert {name for name, _ in module[0].named_parameters()} == {"weight", "bias"}
    torch.testing.assert_close(module(x), before, rtol=0, atol=0)
    copy.deepcopy(module)


def test_a_recurrent_layer_runs_with_the_weight_that_was_written_out():
    torch.manual_seed(0)
    layer = parametrizations.weight_norm(nn.GRU(4, 3, batch_first=True), "weight_hh_l0").eval()
    x = torch.randn(2, 5, 4)
    before = layer(x)[0]
    assert write_out_weights(layer) == ["weight_hh_l0"]
    torch.testing.assert_close(layer(x)[0], before, rtol=0, atol=0)


def test_a_weight_that_is_another_at_every_call_stays_computed():
    layer = parametrize.register_parametrization(nn.Linear(4, 4), "weight", Noisy())
    assert write_out_weights(layer) == []
    assert parametrize.is_parametrized(layer)


def test_a_plain_module_is_left_alone():
    module = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))
    state = copy.deepcopy(module.state_dict())
    assert write_out_weights(module) == []
    assert list(module.state_dict()) == list(state)
    assert module.training
