from __future__ import annotations

from tests.engine.quantize.simulate.plans import INT8, plan_of, simulator_of


def test_a_folded_norm_has_the_error_of_its_convolution(conv2d):
    simulator, examples = simulator_of(conv2d)
    errors = simulator.errors(plan_of(simulator, INT8), examples)
    ((norm, home),) = simulator.folded.items()
    assert errors[norm] is errors[home]
