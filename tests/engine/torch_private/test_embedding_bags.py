"""Bags of equal length are traced as a lookup and a reduction; the others stay bags."""

import pytest
import torch
from torch import nn

from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program


class Bags(nn.Module):
    def __init__(self, mode="sum", **options):
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 8, mode=mode, **options)

    def forward(self, indices, offsets=None):
        return self.bag(indices, offsets)


def _indices(bags, length, seed=0):
    return torch.randint(0, 50, (bags, length), generator=torch.Generator().manual_seed(seed))


def _export(module, *args, strict=False):
    shapes = tuple(dict.fromkeys(range(one.dim()), DYNAMIC) for one in args)
    with torch.no_grad():
        return export_program(module.eval(), args, {}, dynamic_shapes=shapes, strict=strict)


def _names(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_equal_length_are_lookups(mode, strict):
    module = Bags(mode)
    program = _export(module, _indices(4, 3), strict=strict)
    assert "aten.embedding.default" in _names(program)
    assert not [name for name in _names(program) if "embedding_bag" in name]
    other = _indices(7, 5, seed=1)
    assert torch.allclose(program.module()(other), module(other), atol=1e-6)


def test_weights_of_the_samples_scale_the_rows():
    class Weighted(Bags):
        def forward(self, indices, weights):
            return self.bag(indices, per_sample_weights=weights)

    module = Weighted()
    program = _export(module, _indices(4, 3), torch.rand(4, 3))
    assert "aten.embedding.default" in _names(program)
    indices, weights = _indices(2, 6, seed=2), torch.rand(2, 6)
    assert torch.allclose(program.module()(indices, weights), module(indices, weights), atol=1e-6)


def test_bags_of_different_lengths_or_with_a_row_left_out_stay_bags():
    ragged = _export(Bags(), _indices(1, 9)[0], torch.tensor([0, 4, 6]))
    padded = _export(Bags(padding_idx=0), _indices(4, 3))
    for program in (ragged, padded):
        assert [name for name in _names(program) if "embedding_bag" in name]


def test_torch_has_its_own_function_again_after_the_trace():
    before = nn.functional.embedding_bag
    _export(Bags(), _indices(4, 3))
    assert nn.functional.embedding_bag is before
