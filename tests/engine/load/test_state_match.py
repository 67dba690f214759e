"""Names of a file of weights are matched with those of a module."""

import pytest
import torch
from torch import nn

from ace_studio.engine.load.state_match import StateDict, best_matches, compare_states, shown
from ace_studio.engine.load.tensors import find_state_dicts
from ace_studio.records.errors import AceError
from tests.engine.load.test_weights import is_equal, net, put, with_prefix


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


def test_the_counters_of_old_batch_norms_may_be_missing(tmp_path):
    trained = net().state_dict()
    old = {name: tensor for name, tensor in trained.items() if "num_batches" not in name}
    module = net()
    put(module, {f"module.{name}": tensor for name, tensor in old.items()}, tmp_path)
    assert torch.equal(module[0].weight, trained["0.weight"])


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_shared_weight_may_have_one_of_its_names(tmp_path, device):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
            self.head.weight = self.table.weight

    trained = Tied().state_dict()
    with torch.device(device):
        module = Tied()
    put(module, {"table.weight": trained["table.weight"]}, tmp_path)
    assert torch.equal(module.head.weight, trained["table.weight"])
    with pytest.raises(AceError):
        put(nn.Sequential(nn.Linear(4, 6), nn.Linear(4, 6)), {"0.weight": torch.ones(6, 4)}, tmp_path)


def test_lazy_parameters_take_any_shape():
    lazy = nn.LazyLinear(3).state_dict()
    assert not compare_states(nn.Linear(7, 3).state_dict(), lazy)


def test_what_wrappers_put_into_the_middle_of_names_is_taken_out(tmp_path):
    trained, module = net().state_dict(), nn.ModuleDict({"encoder": net()})
    put(module, with_prefix("encoder._orig_mod.module.", trained), tmp_path)
    assert is_equal(module["encoder"], trained)


def test_a_small_model_does_not_fit_into_a_part_of_a_larger_one(tmp_path):
    larger = nn.Sequential(*(nn.Linear(2, 2) for _ in range(4))).state_dict()
    with pytest.raises(AceError) as caught:
        put(nn.Linear(2, 2), larger, tmp_path)
    assert "6 unknown to the model" in caught.value.problem.why


def test_of_several_state_dicts_the_one_that_fits_counts(tmp_path):
    trained, module = net().state_dict(), net()
    checkpoint = {"model": nn.Linear(9, 9).state_dict(), "detector": with_prefix("module.", trained)}
    put(module, find_state_dicts(checkpoint), tmp_path)
    assert is_equal(module, trained)


def test_a_complete_match_comes_before_one_with_more_left_out():
    weights = net().state_dict()
    both = {**with_prefix("a.", weights), **with_prefix("b.", {name: weights[name] for name in list(weights)[:1]})}
    matches = best_matches([StateDict(both)], weights)
    assert matches[0].prefix == "a." and not matches[0].difference
    assert all(match.rank <= matches[0].rank for match in matches)


def test_long_lists_of_names_are_cut_with_their_number():
    assert shown(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert shown(["a"], most=2) == "a"
