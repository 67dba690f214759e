"""Adaptive pools written as ops that are right at every size."""

import warnings

import pytest
import torch
from torch._decomp import decomposition_table
from torch.nn import functional

from ace_studio.engine.torch_private.adaptive_pools import FREE_POOLS, adaptive_pools_of_any_size, free_max_pool
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program


class Pool(torch.nn.Module):
    def forward(self, x):
        maxima, places = functional.adaptive_max_pool2d(x, (4, 6), return_indices=True)
        averages = functional.adaptive_avg_pool2d(x, (4, 6)), functional.adaptive_avg_pool1d(x.flatten(2), 5)
        return *averages, maxima, places, functional.adaptive_max_pool1d(x.flatten(2), 3)


@pytest.fixture(scope="module")
def decomposed():
    shapes = ({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},)
    with torch.no_grad(), adaptive_pools_of_any_size(), warnings.catch_warnings(action="ignore"):
        program = export_program(Pool(), (torch.randn(2, 3, 12, 18),), {}, dynamic_shapes=shapes, strict=False)
        return program.run_decompositions({pool: decomposition_table[pool] for pool in FREE_POOLS}).module()


@pytest.mark.parametrize("size", [(12, 18), (4, 6), (3, 5), (7, 11), (13, 8), (64, 31), (2, 2)])
def test_the_values_are_those_of_torch_whether_the_size_divides_or_not(decomposed, size):
    x = torch.randn(3, 3, *size)
    for own, expected in zip(decomposed(x), Pool()(x), strict=True):
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize(("pool", "free"), FREE_POOLS.items())
def test_a_pool_of_known_sizes_that_divide_is_left_to_torch(pool, free):
    x = torch.randn(1, 2, 6, 9)
    assert free(x, (2, 3)) is NotImplemented
    before = decomposition_table[pool]
    with adaptive_pools_of_any_size():
        torch.testing.assert_close(decomposition_table[pool](x, (2, 3)), before(x, (2, 3)))
    assert decomposition_table[pool] is before


def test_maxima_of_known_sizes_that_do_not_divide_are_decomposed():
    x = torch.randn(1, 2, 5, 7)
    expected = functional.adaptive_max_pool2d(x, (2, 3), return_indices=True)
    for own, other in zip(free_max_pool(x, (2, 3)), expected, strict=True):
        torch.testing.assert_close(own, other)
    assert free_max_pool(x, (1, 1)) is NotImplemented


def test_the_mean_of_a_channels_last_picture_is_no_arithmetic_on_strides():
    class Mean(torch.nn.Module):
        def forward(self, x):
            return functional.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1)

    x = torch.randn(2, 6, 9, 3)
    with torch.no_grad(), adaptive_pools_of_any_size(), warnings.catch_warnings(action="ignore"):
        program = export_program(Mean(), (x,), {}, dynamic_shapes=({0: DYNAMIC},), strict=False).run_decompositions()
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.mean.dim" in names
    assert not any("strided" in name for name in names)
    torch.testing.assert_close(program.module()(x), Mean()(x))
