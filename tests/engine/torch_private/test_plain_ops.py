"""Bags become a lookup and a reduction, unless they leave a row out; steps and pools of lines keep free sizes free."""

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


def _free_everywhere(module, *args, strict=False):
    shapes = tuple(dict.fromkeys(range(one.dim()), DYNAMIC) for one in args)
    with torch.no_grad():
        return export_program(module.eval(), args, {}, dynamic_shapes=shapes, strict=strict)


def _operators(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def rows(*values, kept):
    """All combinations; those that are not kept, of which each value is in one that is, run with --full only."""
    return [pytest.param(*row, marks=[pytest.mark.full] * (row not in kept)) for row in product(*values)]


MODES, EITHER = ("sum", "mean", "max"), (False, True)


@pytest.mark.parametrize(("mode", "strict"), rows(MODES, EITHER, kept=[("sum", True), ("mean", False), ("max", False)]))
def test_bags_of_equal_length_are_lookups(mode, strict):
    module = Bags(mode)
    program = _free_everywhere(module, _indices(4, 3), strict=strict)
    assert "aten.embedding.default" in _operators(program)
    assert not [name for name in _operators(program) if "embedding_bag" in name]
    other = _indices(7, 5, seed=1)
    assert torch.allclose(program.module()(other), module(other), atol=1e-6)


def test_weights_of_the_samples_scale_the_rows():
    class Weighted(Bags):
        def forward(self, indices, weights):
            return self.bag(indices, per_sample_weights=weights)

    module = Weighted()
    program = _free_everywhere(module, _indices(4, 3), torch.rand(4, 3))
    assert "aten.embedding.default" in _operators(program)
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
    program = _free_everywhere(module, _indices(1, 9)[0], torch.tensor([0, 4, 6, *end]), strict=strict)
    assert not [name for name in _operators(program) if "embedding_bag" in name]
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
    program = _free_everywhere(module, _indices(1, 9)[0], torch.tensor([0, 4, 6]), torch.rand(9))
    assert not [name for name in _operators(program) if "embedding_bag" in name]
    given = _indices(1, 9, seed=2)[0], torch.tensor([0, 2, 8]), torch.rand(9)
    assert torch.allclose(program.module()(*given), module(*given), atol=1e-6)


def test_bags_with_a_row_left_out_stay_bags():
    padded = _free_everywhere(Bags(padding_idx=0), _indices(4, 3))
    assert [name for name in _operators(padded) if "embedding_bag" in name]


def test_torch_has_its_own_bags_again_after_the_trace():
    before = nn.functional.embedding_bag
    _free_everywhere(Bags(), _indices(4, 3))
    assert nn.functional.embedding_bag is before


class Steps(nn.Module):
    def __init__(self, start, end, **options):
        super().__init__()
        self.start, self.end, self.options = start, end, options

    def forward(self, x):
        end = x.shape[-1] - 1 if self.end is None else self.end
        return x * torch.linspace(self.start, end, x.shape[-1], **self.options)


class Warp(nn.Module):
    def __init__(self, align_corners):
        super().__init__()
        self.align_corners = align_corners

    def forward(self, theta, x):
        grid = nn.functional.affine_grid(theta, x.shape, align_corners=self.align_corners)
        return grid, nn.functional.grid_sample(x, grid, align_corners=False)


def _free_in_last(module, *args):
    """Every dimension of the last input is dynamic, of the others the first."""
    free = [*([1] * (len(args) - 1)), args[-1].dim()]
    shapes = tuple(dict.fromkeys(range(count), DYNAMIC) for count in free)
    with torch.no_grad():
        return export_program(module.eval(), args, {}, dynamic_shapes=shapes, strict=False).module()


@pytest.mark.parametrize("bounds", [(-1, 1), (0.0, 17.0), (2.1, -3.3)])
def test_the_count_of_linspace_stays_free(bounds):
    module = Steps(*bounds)
    exported = _free_in_last(module, torch.ones(2, 9))
    for count in (1, 2, 5, 8, 50, 513):
        assert torch.allclose(exported(torch.ones(3, count)), module(torch.ones(3, count)), rtol=1e-6, atol=1e-6)


def test_whole_numbers_are_exact_so_that_rounding_them_down_gives_the_same():
    module = Steps(0, None)
    exported = _free_in_last(module, torch.ones(1, 9))
    for count in (2, 50, 84, 1000):
        assert torch.equal(exported(torch.ones(1, count)), torch.arange(count, dtype=torch.float32)[None])


def test_linspace_of_integers_and_of_a_fixed_count_is_left_to_torch():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.sum() + torch.linspace(0, 1, 4), torch.linspace(0, 6, 4, dtype=torch.int64)

    floats, integers = _free_in_last(Fixed(), torch.zeros(2))(torch.zeros(3))
    assert torch.equal(floats, torch.linspace(0, 1, 4))
    assert integers.tolist() == [0, 2, 4, 6]


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid")  # torch warns of one pixel
@pytest.mark.parametrize(
    ("align_corners", "spatial"),
    [
        (True, (7, 9)),
        (False, (4, 5, 6)),
        pytest.param(False, (7, 9), marks=[pytest.mark.full]),
        pytest.param(True, (4, 5, 6), marks=[pytest.mark.full]),
    ],
)
def test_the_sizes_of_an_affine_grid_stay_free(align_corners, spatial):
    module, n = Warp(align_corners), len(spatial)
    exported = _free_in_last(module, torch.randn(2, n, n + 1), torch.randn(2, 3, *spatial))
    for batch, sizes in ((2, spatial), (1, (12, 3, 8)[:n]), (4, (1, 5, 1)[:n])):
        given = torch.randn(batch, n, n + 1), torch.randn(batch, 3, *sizes)
        for ours, own in zip(exported(*given), module(*given), strict=True):
            assert torch.allclose(ours, own, atol=1e-4)


def test_torch_has_its_own_steps_again_after_the_trace():
    before = torch.linspace, nn.functional.affine_grid
    _free_in_last(Steps(0, 1), torch.ones(2, 9))
    assert (torch.linspace, nn.functional.affine_grid) == before


POOLS = [
    nn.MaxPool1d(2),
    nn.MaxPool1d(3, 2, padding=1),
    nn.MaxPool1d(3, stride=1, dilation=2),
    nn.MaxPool1d((4,), stride=(3,), padding=(2,)),
]


def _free_line(module, x, strict):
    shapes = ({0: DYNAMIC, x.dim() - 1: DYNAMIC},)
    with torch.no_grad():
        return export_program(module, (x,), {}, dynamic_shapes=shapes, strict=strict).module()


@pytest.mark.parametrize(("pool", "strict"), [(pool, at % 2 == 1) for at, pool in enumerate(POOLS)], ids=str)
def test_the_length_stays_free(pool, strict):
    exported = _free_line(pool, torch.randn(2, 3, 20), strict)
    for batch, length in ((1, 7), (2, 20), (5, 33)):
        x = torch.randn(batch, 3, length)
        assert torch.equal(exported(x), pool(x))


def test_a_call_of_torch_with_one_line_a_channel_is_free_too():
    class Pool(nn.Module):
        def forward(self, x):
            return torch.max_pool1d(x, 2, padding=1)

    exported = _free_line(Pool(), torch.randn(3, 20), False)
    x = torch.randn(4, 31)
    assert torch.equal(exported(x), Pool()(x))


def test_a_pool_of_a_known_length_is_left_to_torch():
    with torch.no_grad():
        program = export_program(POOLS[0], (torch.randn(2, 3, 20),), {}, dynamic_shapes=({0: DYNAMIC},), strict=False)
    assert torch.ops.aten.max_pool1d.default in {node.target for node in program.graph.nodes}
