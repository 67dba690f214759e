"""Weights go in exactly, or what does not fit is told in a few lines."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ace_studio.engine.load.weights import compare_states, load_weights
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def put(module, weights, tmp_path, reporter=None):
    load_weights(module, weights, tmp_path / "w.pt", reporter=reporter or Reporter())


def is_equal(module, weights) -> bool:
    return all(torch.equal(tensor, weights[name]) for name, tensor in module.state_dict().items())


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model.", "module.model.net."])
def test_a_prefix_that_all_names_share_is_taken_off(tmp_path, prefix):
    trained, module = net().state_dict(), net()
    put(module, {prefix + name: tensor for name, tensor in trained.items()}, tmp_path)
    assert is_equal(module, trained)


def test_the_prefix_of_a_wrapper_is_put_on(tmp_path):
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net()

    trained, module = net().state_dict(), Wrapper()
    put(module, trained, tmp_path)
    assert is_equal(module.inner, trained)


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


def test_the_counters_of_old_batch_norms_may_be_missing(tmp_path):
    trained = net().state_dict()
    old = {name: tensor for name, tensor in trained.items() if "num_batches" not in name}
    module = net()
    put(module, {f"module.{name}": tensor for name, tensor in old.items()}, tmp_path)
    assert torch.equal(module[0].weight, trained["0.weight"])


def test_weights_that_are_not_finite_are_loaded_with_a_warning(tmp_path):
    weights = net().state_dict()
    weights["0.bias"][1] = float("nan")
    reporter = Reporter()
    put(net(), weights, tmp_path, reporter)
    assert [warning.code for warning in reporter.warnings] == ["non-finite-weights"]
    assert "0.bias" in reporter.warnings[0].what


def test_lazy_parameters_take_any_shape():
    lazy = nn.LazyLinear(3).state_dict()
    assert not compare_states(nn.Linear(7, 3).state_dict(), lazy)


def test_half_precision_weights_go_into_a_float_module(tmp_path):
    module = net()
    put(module, {name: tensor.half() for name, tensor in net().state_dict().items()}, tmp_path)
    assert module[0].weight.dtype is torch.float32
