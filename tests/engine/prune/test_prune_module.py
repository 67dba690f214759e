"""Pruning a copy of a module: what goes, what stays, and what is told about it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import pytest
import torch
from torch import nn

from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.prune import PruneJob, prune_module
from ace_studio.engine.prune.importance import TaylorData
from ace_studio.engine.prune.masks import global_masks
from ace_studio.engine.prune.structured import OUTPUT_REASON
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import Importance, PruneChoice, PruneMethod
from tests import tiny_models

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("torch_pruning") is None, reason="torch-pruning is not installed"
)


def examples_of(tiny):
    return [Example.of(one) for one in tiny.examples]


def prune(tiny, method="unstructured", *, reporter=None, taylor=None, **choice):
    choice = PruneChoice(method=PruneMethod(method), **choice)
    job = PruneJob(
        module=tiny.module,
        choice=choice,
        examples=examples_of(tiny),
        reporter=reporter or Reporter(),
        taylor=taylor,
    )
    return prune_module(job)


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


@needs_library
@pytest.mark.parametrize("make", [tiny_models.conv_net, tiny_models.mlp, tiny_models.text_model])
def test_structured_keeps_the_outputs_and_makes_the_tensors_smaller(make):
    tiny = make()
    pruned = prune(tiny, "structured", round_to=4)
    for example in examples_of(tiny):
        with torch.no_grad():
            wanted, given = example.call(tiny.module), example.call(pruned.module)
        flat = torch.utils._pytree.tree_leaves
        assert [one.shape for one in flat(given)] == [one.shape for one in flat(wanted)]
    report = pruned.report
    assert report.macs_after < report.macs_before and report.bytes_after < report.bytes_before
    assert any(row.shape_after != row.shape_before for row in report.layers)
    assert report.sqnr_db is not None and not pruned.masks


def test_without_the_library_structured_pruning_says_how_to_get_it(monkeypatch):
    def is_missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", is_missing)
    with pytest.raises(AceError) as caught:
        prune(tiny_models.mlp(), "structured")
    assert caught.value.problem.code is ErrorCode.NOT_INSTALLED and "ace-studio[prune]" in caught.value.problem.remedy
    prune(tiny_models.mlp(), "n:m")  # needs none


@needs_library
def test_channels_left_are_a_multiple_of_round_to():
    pruned = prune(tiny_models.conv_net(), "structured", amount=0.4, round_to=4)
    assert pruned.module.stem[0].out_channels == 4


@needs_library
def test_a_layer_that_gives_the_output_says_that_it_stays():
    kept = {one.module: one.reason for one in prune(tiny_models.text_model(), "structured", round_to=4).report.kept}
    assert kept["attention.project"] == OUTPUT_REASON


@needs_library
def test_a_graph_that_cannot_be_followed_names_the_layer():
    with pytest.raises(AceError) as caught:
        prune(tiny_models.shared_layer(), "structured", round_to=4)
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED
    assert "layer: the model fails without some of its channels" in caught.value.problem.why


class HalfStubborn(nn.Module):
    """One branch writes its width into its code, so its channels must stay; the other does not."""

    def __init__(self):
        super().__init__()
        self.fixed, self.free = nn.Linear(8, 16), nn.Linear(8, 16)
        self.join, self.head = nn.Linear(32, 4), nn.Linear(16, 4)

    def forward(self, x):
        return self.join(torch.cat([self.fixed(x).reshape(-1, 16), torch.ones(len(x), 16)], 1)) + self.head(
            self.free(x)
        )


@needs_library
def test_layers_that_break_the_model_stay_and_the_others_are_pruned():
    tiny = tiny_models.TinyModel(HalfStubborn().eval(), [(torch.randn(2, 8),)])
    report = prune(tiny, "structured", round_to=4).report
    assert {row.module for row in report.layers} == {"free", "head"}
    assert "fails without some of its channels" in {one.module: one.reason for one in report.kept}["fixed"]


def test_layers_are_ignored_by_module_and_type():
    report = prune(tiny_models.conv_net(), ignore=("module:blocks.*", "type:Linear")).report
    assert {row.module for row in report.layers} == {"stem.0"}
    assert {one.module: one.reason for one in report.kept} == {
        "blocks.0.conv": "ignored: module:blocks.*",
        "blocks.1.conv": "ignored: module:blocks.*",
        "head": "ignored: type:Linear",
    }


def test_every_pattern_that_matches_nothing_is_told():
    with pytest.raises(AceError) as caught:
        prune(tiny_models.mlp(), ignore=("module:head", "module:0", "type:Conv9d"))
    assert [one.code for one in caught.value.problems] == [ErrorCode.NOT_FOUND] * 2
    assert "module:head" in caught.value.problem.what and "2, 0" in caught.value.problem.why


def test_a_model_without_layers_says_that_there_is_nothing_to_prune():
    with pytest.raises(AceError) as caught:
        prune(tiny_models.recurrent())
    assert caught.value.problem.code is ErrorCode.UNSUPPORTED and "nothing to prune" in caught.value.problem.what


def test_an_amount_below_one_weight_says_that_nothing_was_pruned():
    with pytest.raises(AceError) as caught:
        prune(tiny_models.shared_layer(), amount=0.001)
    assert "Nothing was pruned" in caught.value.problem.what


def test_a_weight_that_two_modules_read_stays():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.middle, self.head = nn.Embedding(12, 8), nn.Linear(8, 8), nn.Linear(8, 12, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.middle(self.embed(ids)))

    tiny = tiny_models.TinyModel(Tied().eval(), [(torch.arange(6).reshape(1, 6),)])
    report = prune(tiny).report
    assert {one.module for one in report.kept} == {"head"} and {row.module for row in report.layers} == {"middle"}


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


class Deaf(nn.Module):
    """Its first inputs are large weights on inputs that never come; size alone would keep them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(torch.tensor([[9.0, 9.0, 0.1, 0.2]] * 2))

    def forward(self, x):
        return self.linear(x * torch.tensor([0.0, 0.0, 1.0, 1.0]))


def test_taylor_keeps_what_the_outputs_hear():
    tiny = tiny_models.TinyModel(Deaf().eval(), [(torch.ones(1, 4),)])
    data = TaylorData(batches=lambda: [(one, None) for one in examples_of(tiny)])
    by_size = prune(tiny, amount=0.5).module.linear.weight
    by_gradient = prune(tiny, amount=0.5, importance=Importance.TAYLOR, taylor=data).module.linear.weight
    assert by_size[0].tolist() == pytest.approx([9.0, 9.0, 0.0, 0.0])
    assert by_gradient[0].tolist() == pytest.approx([0.0, 0.0, 0.1, 0.2])


def test_taylor_needs_data_and_a_loss_needs_to_be_a_scalar():
    tiny = tiny_models.mlp()
    with pytest.raises(AceError) as caught:
        prune(tiny, importance=Importance.TAYLOR)
    assert caught.value.problem.code is ErrorCode.NO_DATA
    bad = TaylorData(batches=lambda: [(one, 0) for one in examples_of(tiny)], loss=lambda output, label: output)
    with pytest.raises(AceError) as caught:
        prune(tiny, importance=Importance.TAYLOR, taylor=bad)
    assert caught.value.problem.code is ErrorCode.USER_CODE


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
