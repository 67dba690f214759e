import math

import pytest
import torch

from ace_studio.engine.quantize.simulate import PAIRS, READS
from ace_studio.engine.quantize.simulate.runs import OpError, add_energy
from ace_studio.records.recipes.plan import Precision
from tests.engine.quantize.simulate.plans import simulated_in


def test_a_style_changes_only_int8_static():
    for precision in (Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.FP16):
        found = {
            style.name: s.fidelity_db(plan, x)
            for style in (READS, PAIRS)
            for s, plan, x in [simulated_in(style, precision=precision)]
        }
        assert len(set(found.values())) == 1


def test_a_tenth_of_the_value_as_error_is_20_db():
    sums = [0.0, 0.0]
    add_energy(sums, torch.tensor([10.0, 10.0]), torch.tensor([9.0, 11.0]))
    assert OpError(*sums).sqnr_db == pytest.approx(20.0)


def test_places_that_are_infinite_in_float_do_not_count_and_those_that_only_the_plan_makes_infinite_do():
    sums = [0.0, 0.0]
    add_energy(sums, torch.tensor([math.inf, 2.0]), torch.tensor([0.0, 2.0]))
    assert sums == [4.0, 0.0]
    add_energy(sums, torch.tensor([2.0]), torch.tensor([math.inf]))
    assert sums[1] == math.inf
    assert OpError(*sums).sqnr_db == -200.0
