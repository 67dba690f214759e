"""Weights go in exactly, or what does not fit is told in a few lines."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, spectral_norm

from ace_studio.engine.load.tensors import find_state_dicts, read_state_dicts
from ace_studio.engine.load.weights import load_weights, write_out_weights
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import Plain, load, warned, write_net


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def put(module, weights, tmp_path, reporter=None):
    load_weights(module, weights, tmp_path / "w.pt", reporter=reporter or Reporter())


def is_equal(module, weights) -> bool:
    return all(torch.equal(tensor, weights[name]) for name, tensor in module.state_dict().items())


def test_differences_are_grouped_and_counted(tmp_path):
    weights = net().state_dict()
    weights["0.weight"] = torch.zeros(5, 2)
    del weights["0.bias"]
    weights["extra"] = torch.zeros(1)
    module = net()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(AceError) as caught:
        put(module, weights, tmp_path)
    problem = caught.value.problem
    assert problem.code is ErrorCode.BAD_FILE
    assert "1 missing in the file (0.bias)" in problem.why
    assert "1 unknown to the model (extra)" in problem.why
    assert "0.weight: [5, 2] in the file, [3, 2] in the model" in problem.why
    assert problem.details.count("\n") == 2
    assert is_equal(module, before)  # nothing was copied


def test_long_lists_are_shortened_in_the_message_but_not_in_the_details(tmp_path):
    module = nn.Sequential(*(nn.Linear(1, 1) for _ in range(50)))
    with pytest.raises(AceError) as caught:
        put(module, {"x": torch.zeros(1)}, tmp_path)
    assert "and 94 more" in caught.value.problem.why
    assert caught.value.problem.details.count("missing") == 100


def test_weights_that_are_not_finite_are_loaded_with_a_warning(tmp_path):
    weights = net().state_dict()
    weights["0.bias"][1] = float("nan")
    reporter = Reporter()
    put(net(), weights, tmp_path, reporter)
    assert [warning.code for warning in reporter.warnings] == ["non-finite-weights"]
    assert "0.bias" in reporter.warnings[0].what


def test_half_precision_weights_go_into_a_float_module(tmp_path):
    module = net()
    put(module, {name: tensor.half() for name, tensor in net().state_dict().items()}, tmp_path)
    assert module[0].weight.dtype is torch.float32


def changed(weights, by=1.0):
    return {name: tensor + by if tensor.is_floating_point() else tensor for name, tensor in weights.items()}


def with_prefix(prefix, weights):
    return {prefix + name: tensor for name, tensor in weights.items()}


def test_a_factory_that_wraps_takes_weights_saved_without_the_wrapper(tmp_path):
    trained, module = net().state_dict(), nn.ModuleDict({"head": nn.DataParallel(net())})
    put(module, with_prefix("head.", trained), tmp_path)
    assert is_equal(module["head"].module, trained)


def test_what_a_training_script_keeps_beside_the_model_is_left_out_and_named(tmp_path):
    trained, module, reporter = net().state_dict(), net(), Reporter()
    put(module, {**with_prefix("model.", trained), "criterion.weight": torch.ones(3)}, tmp_path, reporter)
    assert is_equal(module, trained)
    assert "criterion.weight" in warned(reporter)["weights-left-out"]


def test_the_weights_themselves_come_before_their_running_average(tmp_path):
    trained, module, reporter = net().state_dict(), net(), Reporter()
    checkpoint = {"model_ema": changed(trained), "epoch": 3, "model": {"module": trained}}
    put(module, find_state_dicts(checkpoint), tmp_path, reporter)
    assert is_equal(module, trained)
    assert "model_ema" in warned(reporter)["weights-choice"]
    put(module, {**with_prefix("ema_model.", changed(trained)), **with_prefix("model.", trained)}, tmp_path)
    assert is_equal(module, trained)


def test_the_key_of_a_state_dict_can_be_named(tmp_path):
    trained = net().state_dict()
    torch.save({"model": trained, "model_ema": changed(trained)}, tmp_path / "w.pt")
    (state,) = read_state_dicts(tmp_path / "w.pt", key="model_ema")
    assert torch.equal(state.tensors["0.bias"], trained["0.bias"] + 1)
    torch.save(with_prefix("teacher.", trained), tmp_path / "w.pt")
    assert set(read_state_dicts(tmp_path / "w.pt", key="teacher")[0].tensors) == set(with_prefix("teacher.", trained))
    with pytest.raises(AceError, match="no weights under 'ema'") as caught:
        read_state_dicts(tmp_path / "w.pt", key="ema")
    assert "teacher" in caught.value.problem.why


def test_a_recipe_names_the_key_after_the_file(tmp_path):
    write_net(tmp_path)
    trained = nn.ModuleDict({"linear": nn.Linear(2, 3)}).state_dict()
    torch.save({"model": trained, "model_ema": changed(trained)}, tmp_path / "w.pt")
    loaded = load(tmp_path, "net.py", entry="make_model", weights="w.pt:model_ema")
    assert torch.equal(loaded.module.linear.bias, trained["linear.bias"] + 1)


def test_the_difference_says_how_much_fits_and_which_name_is_nearest(tmp_path):
    weights = net().state_dict()
    weights["0.wight"] = weights.pop("0.weight")
    with pytest.raises(AceError) as caught:
        put(net(), weights, tmp_path)
    problem = caught.value.problem
    assert problem.why.startswith("6 of 7 match; 1 missing")
    assert "0.weight may be 0.wight" in problem.why
    assert "missing: 0.weight (nearest: 0.wight)" in problem.details


def test_a_module_in_a_trusted_checkpoint_is_found_under_its_key(tmp_path):
    torch.save({"epoch": 1, "ema": None, "model": Plain()}, tmp_path / "c.pt")
    assert type(load(tmp_path, "c.pt").module) is Plain


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
