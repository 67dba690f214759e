import pytest
import torch
from torch import nn

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.prune.prune import global_masks
from ace_studio.records.errors import AceError
from tests import tiny_models
from tests.engine.prune.pruned_models import needs_library, prune


def weights_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("method", ["unstructured", "n:m", pytest.param("structured", marks=needs_library)])
def test_the_original_stays_as_it_is(method):
    tiny = tiny_models.conv_net()
    before = weights_of(tiny.module)
    pruned = prune(tiny, method, round_to=4)
    assert pruned.module is not tiny.module
    assert all(torch.equal(before[name], value) for name, value in tiny.module.state_dict().items())
    assert all(one.grad is None and one.requires_grad for one in pruned.module.parameters())


def test_unstructured_takes_the_smallest_weights_of_the_whole_model():
    tiny = tiny_models.mlp()
    pruned = prune(tiny, amount=0.25)
    before = torch.cat([tiny.module[0].weight.flatten(), tiny.module[2].weight.flatten()]).detach().abs()
    after = torch.cat([pruned.module[0].weight.flatten(), pruned.module[2].weight.flatten()]).detach()
    gone = after == 0
    assert int(gone.sum()) == round(0.25 * before.numel())
    assert float(before[gone].max()) <= float(before[~gone].min())
    assert torch.equal(after[~gone].abs(), before[~gone])
    assert sum(row.weights_before - row.weights_after for row in pruned.report.layers) == int(gone.sum())
    assert pruned.report.macs_after == pruned.report.macs_before  # zeros are multiplied all the same
    count = sum(one.numel() for one in tiny.module.parameters())
    assert (pruned.report.parameters_before, pruned.report.parameters_after) == (count, count - int(gone.sum()))


def test_an_amount_below_one_weight_says_that_nothing_was_pruned():
    with pytest.raises(AceError) as caught:
        prune(tiny_models.shared_layer(), amount=0.001)
    assert "Nothing was pruned" in caught.value.problem.what


def test_the_effect_of_each_layer_alone_is_that_of_pruning_only_it():
    tiny = tiny_models.mlp()
    alone = {row.module: row.sqnr_db for row in prune(tiny, "n:m").report.layers}
    only_first = prune(tiny_models.TinyModel(tiny.module, tiny.examples[:1]), "n:m", ignore=("module:2",)).report
    assert alone["0"] == pytest.approx(only_first.sqnr_db)


def test_masks_name_the_parameters_and_hold_what_stays():
    pruned = prune(tiny_models.mlp(), amount=0.5)
    parameters = dict(pruned.module.named_parameters())
    assert set(pruned.masks) == {"0.weight", "2.weight"}
    assert all(not bool(parameters[name][~mask].any()) for name, mask in pruned.masks.items())


def test_a_module_that_cannot_be_copied_says_so():
    class Locked(nn.Sequential):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle '_thread.lock' object")

    tiny = tiny_models.TinyModel(Locked(nn.Linear(4, 4)).eval(), [(torch.randn(1, 4),)])
    with pytest.raises(AceError) as caught:
        prune(tiny)
    assert "cannot be copied" in caught.value.problem.what and "lock" in caught.value.problem.why


def test_pruning_stops_when_it_is_asked_to():
    with pytest.raises(Cancelled):
        prune(tiny_models.mlp(), reporter=Reporter(is_cancelled=lambda: True))


@pytest.mark.parametrize("amount", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_exactly_as_many_weights_go_as_were_asked_for_also_where_many_are_equal(amount):
    scores = {"a": torch.tensor([[1.0, 2.0], [2.0, 2.0]]), "b": torch.tensor([2.0, 2.0, 0.5, 9.0, 2.0, 2.0])}
    masks = global_masks(scores, amount=amount).keep
    gone = torch.cat([~masks[path].flatten() for path in scores])
    values = torch.cat([one.flatten() for one in scores.values()])
    assert int(gone.sum()) == round(amount * 10)
    assert gone.all() or not gone.any() or values[gone].max() <= values[~gone].min()


@pytest.mark.parametrize("pattern", ["2:4", "1:4", "4:8"])
def test_n_of_m_keeps_the_largest_of_every_group_along_the_inputs(pattern):
    keep, group = map(int, pattern.split(":"))
    tiny = tiny_models.conv_net()
    pruned = prune(tiny, "n:m", pattern=pattern)
    before = tiny.module.blocks[0].conv.weight.permute(0, 2, 3, 1).reshape(-1, group).abs()
    after = pruned.module.blocks[0].conv.weight.permute(0, 2, 3, 1).reshape(-1, group).abs()
    assert bool(((after != 0).sum(1) == keep).all())
    assert torch.equal(after.sum(1), torch.where(after != 0, before, 0).sum(1))
    assert bool(
        (torch.where(after != 0, before, torch.inf).amin(1) >= torch.where(after == 0, before, 0).amax(1)).all()
    )


def test_a_layer_whose_inputs_are_no_multiple_stays_whole_and_says_so():
    kept = {one.module: one.reason for one in prune(tiny_models.conv_net(), "n:m").report.kept}
    assert kept == {"stem.0": "its 3 inputs are no multiple of 4"}


def test_a_transposed_convolution_is_pruned_along_its_inputs():
    tiny = tiny_models.TinyModel(nn.Sequential(nn.ConvTranspose2d(8, 6, 3)), [(torch.randn(1, 8, 5, 5),)])
    weight = prune(tiny, "n:m").module[0].weight
    assert bool(((weight != 0).permute(1, 2, 3, 0).reshape(-1, 4).sum(1) == 2).all())
