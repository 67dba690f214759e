"""Bags are traced as a lookup and a reduction, unless they leave a row out."""

from itertools import product

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


def rows(*values, kept):
    """All combinations; those that are not kept, of which each value is in one that is, run with --full only."""
    return [pytest.param(*row, marks=[pytest.mark.full] * (row not in kept)) for row in product(*values)]


MODES, EITHER = ("sum", "mean", "max"), (False, True)


@pytest.mark.parametrize(("mode", "strict"), rows(MODES, EITHER, kept=[("sum", True), ("mean", False), ("max", False)]))
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


@pytest.mark.parametrize(
    ("mode", "strict", "has_end"),
    rows(
        MODES, EITHER, EITHER,
        kept=[("sum", False, False), ("sum", True, True), ("mean", False, True), ("max", True, False)],
    ),
)  # fmt: skip
def test_bags_of_different_lengths_are_lookups_at_any_sizes_and_empty_ones_are_zero(mode, strict, has_end):
    module = Bags(mode, include_last_offset=has_end)
    end = [9] if has_end else []
    program = _export(module, _indices(1, 9)[0], torch.tensor([0, 4, 6, *end]), strict=strict)
    assert not [name for name in _names(program) if "embedding_bag" in name]
    end = [12] if has_end else []
    other = _indices(1, 12, seed=1)[0], torch.tensor([0, 0, 5, 5, 11, 12, *end])
    expected = module(*other)
    assert (expected[[0, 2, 5]] == 0).all()
    assert torch.allclose(program.module()(*other), expected, atol=1e-6)


def test_bags_of_different_lengths_take_weights_of_the_samples():
    class Weighted(Bags):
        def forward(self, indices, offsets, weights):
            return self.bag(indices, offsets, weights)

    module = Weighted()
    program = _export(module, _indices(1, 9)[0], torch.tensor([0, 4, 6]), torch.rand(9))
    assert not [name for name in _names(program) if "embedding_bag" in name]
    given = _indices(1, 9, seed=2)[0], torch.tensor([0, 2, 8]), torch.rand(9)
    assert torch.allclose(program.module()(*given), module(*given), atol=1e-6)


def test_bags_with_a_row_left_out_stay_bags():
    padded = _export(Bags(padding_idx=0), _indices(4, 3))
    assert [name for name in _names(padded) if "embedding_bag" in name]


def test_torch_has_its_own_function_again_after_the_trace():
    before = nn.functional.embedding_bag
    _export(Bags(), _indices(4, 3))
    assert nn.functional.embedding_bag is before
