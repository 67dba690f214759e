import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name that the whole field uses
from torch import nn

from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Observer
from tests.engine.sensitivity.scans import captured_of, random_values, scan_of


def test_a_graph_that_writes_into_its_values_gives_what_one_that_does_not_gives():
    class Block(nn.Module):
        def __init__(self, inplace):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))
            self.inplace = inplace

        def forward(self, x):
            for layer in self.layers:
                y = layer(x)
                x = x + (F.relu_(y) if self.inplace else F.relu(y))
            return x

    found = []
    for inplace in (False, True):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = Block(inplace)
        captured = captured_of(module, (random_values(2, 8),), (random_values(5, 8),))
        found.append(list(scan_of(captured, [[random_values(8, 8)]]).run()[Precision.INT8_STATIC].values()))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_ranges_follow_from_the_recipes_observer():
    module = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
    captured = captured_of(module, (random_values(2, 16),), (random_values(5, 16),))
    samples = [[random_values(512, 16)]]
    samples[0][0][0, 0] = 1000.0
    first = captured.table.op_id[next(iter(captured.table.op_rows()))]
    found = {}
    for observer in (Observer.MIN_MAX, Observer.PERCENTILE):
        scan = scan_of(
            captured, samples, ranges=RangeChoice(observer, percentile=99.9), precisions=(Precision.INT8_STATIC,)
        )
        scan.run()
        found[observer] = max(high for _, high in scan.saved.ranges.values())
    assert found[Observer.MIN_MAX] == 1000.0
    assert found[Observer.PERCENTILE] < 10.0
    assert first in scan.watched


def test_values_that_are_not_finite_stay_float():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

        def forward(self, x, mask):
            y = self.layers[0](x)
            return self.layers[1](F.scaled_dot_product_attention(y, y, y, attn_mask=mask))

    mask = torch.zeros(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    captured = captured_of(Masked(), (random_values(2, 6, 8), mask), (random_values(5, 6, 8), mask))
    noise = scan_of(captured, [[random_values(3, 6, 8), mask]]).run()
    assert all(0.0 < one < 1.0 for row in noise.values() for one in row.values())
