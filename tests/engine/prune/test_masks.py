from __future__ import annotations

import pytest
import torch
from torch import nn

from ace_studio.engine.prune.masks import global_masks
from tests import tiny_models
from tests.engine.prune.pruned_models import prune


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
