"""Probes reach what a model depends on, and only what its own answer is defined for."""

import math

import pytest
import torch
from torch import nn

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.pipeline.compress.probes import Probes
from tests.engine.captured import captured_of


def probes_of(module, *examples):
    return Probes(captured_of(module.eval(), *examples), seconds=100.0)


def named(probes):
    return {probe.name: probe for probe in probes.all}


class Lookup(nn.Module):
    def __init__(self, buckets=0):
        super().__init__()
        self.table, self.buckets = nn.Embedding(50, 4), buckets

    def forward(self, ids, mask):
        rows = self.table(ids % self.buckets if self.buckets else ids)
        return (rows * mask[..., None]).sum(1)


def ids_and_mask(batch):
    return torch.randint(0, 50, (batch, 6)), torch.ones(batch, 6, dtype=torch.int64)


def test_ids_reach_the_ends_of_their_table_and_a_mask_is_left_alone():
    found = named(probes_of(Lookup(), ids_and_mask(2), ids_and_mask(3)))
    assert {"ids = 0", "ids = 49"} <= set(found)
    assert not [
        name for name in found if name.startswith(("ids = 1", "mask ="))
    ]  # eager refuses, and no table reads it


def test_ids_without_an_end_are_tried_beyond_what_int32_holds():
    found = named(probes_of(Lookup(buckets=37), ids_and_mask(2), ids_and_mask(3)))
    assert {f"ids = {2**31}", f"ids = {2**40 + 12345}"} <= set(found)


class Imputes(nn.Module):
    def __init__(self, *, looks):
        super().__init__()
        self.linear, self.looks = nn.Linear(6, 3), looks

    def forward(self, x):
        return self.linear(torch.where(torch.isnan(x), 0.0, x) if self.looks else x)


@pytest.mark.parametrize("looks", [True, False])
def test_nan_is_tried_where_the_model_says_what_it_means_and_infinity_only_if_it_does_that_too(looks):
    found = named(probes_of(Imputes(looks=looks), (torch.randn(2, 6),), (torch.randn(3, 6),)))
    assert ("NaN in x" in found) == looks and "infinity in x" not in found
    assert {"zeros", "ones", "negative values", "values near 1e-30"} <= set(found)


def test_sizes_that_were_equal_in_all_examples_move_together():
    class Adds(nn.Module):
        def forward(self, one, other):
            return one + other

    found = probes_of(Adds(), *[(torch.randn(n, 4), torch.randn(n, 4)) for n in (3, 5)])
    small = [probe for probe in found.all if probe.name.startswith("a size of 1")]
    assert [[tuple(leaf.shape) for leaf in probe.example.tensors()] for probe in small] == [[(1, 4), (1, 4)]]


def test_the_noise_of_a_probe_tells_rounding_from_another_function():
    class Steep(nn.Module):
        def forward(self, x):
            return torch.log((x - x.mean()).abs() + 1e-12)

    probes = probes_of(Steep(), (torch.randn(2, 8),), (torch.randn(3, 8),))
    ones = named(probes)["ones"]
    rounded = [ones.expected[0] + 1e-3 * probes.noise(ones)[0]]
    assert not difference(ones.expected, rounded, noise=probes.noise(ones))
    assert difference(ones.expected, [torch.full_like(ones.expected[0], math.nan)], noise=probes.noise(ones))
