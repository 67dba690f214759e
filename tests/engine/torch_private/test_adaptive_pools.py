"""Adaptive pools written as ops that are right at every size."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._decomp import decomposition_table
from torch.nn import functional

from ace_studio.engine.torch_private.adaptive_pools import ADAPTIVE_POOL, adaptive_pools_of_any_size, free_pool
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program


class Pool(torch.nn.Module):
    def forward(self, x):
        return functional.adaptive_avg_pool2d(x, (4, 6)), functional.adaptive_avg_pool1d(x.flatten(2), 5)


@pytest.fixture(scope="module")
def decomposed():
    shapes = ({0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC},)
    with torch.no_grad(), adaptive_pools_of_any_size(), warnings.catch_warnings(action="ignore"):
        program = export_program(Pool(), (torch.randn(2, 3, 12, 18),), {}, dynamic_shapes=shapes, strict=False)
        return program.run_decompositions({ADAPTIVE_POOL: decomposition_table[ADAPTIVE_POOL]}).module()


@pytest.mark.parametrize("size", [(12, 18), (4, 6), (3, 5), (7, 11), (13, 8), (64, 31), (2, 2)])
def test_the_means_are_those_of_torch_whether_the_size_divides_or_not(decomposed, size):
    x = torch.randn(3, 3, *size)
    for own, expected in zip(decomposed(x), Pool()(x), strict=True):
        torch.testing.assert_close(own, expected)


def test_a_pool_of_known_sizes_is_left_to_torch():
    assert free_pool(torch.ones(1, 2, 5, 7), (2, 3)) is NotImplemented
    before = decomposition_table[ADAPTIVE_POOL]
    with adaptive_pools_of_any_size():
        x = torch.randn(1, 2, 5, 7)
        torch.testing.assert_close(decomposition_table[ADAPTIVE_POOL](x, (2, 3)), before(x, (2, 3)))
    assert decomposition_table[ADAPTIVE_POOL] is before
