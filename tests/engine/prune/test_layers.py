import pytest
import torch
from torch import nn

from ace_studio.records.errors import AceError, ErrorCode
from tests import tiny_models
from tests.engine.prune.pruned_models import prune


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
