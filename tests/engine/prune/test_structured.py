import importlib.metadata
import importlib.util

import pytest
import torch
from torch import nn

from ace_studio.engine.prune.structured import OUTPUT_REASON
from ace_studio.records.errors import AceError, ErrorCode
from tests import tiny_models
from tests.engine.prune.pruned_models import examples_of, needs_library, prune


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
