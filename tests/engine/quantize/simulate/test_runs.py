from __future__ import annotations

import pytest

from ace_studio.engine.quantize.simulate import (
    PAIRS,
    READS,
    OpError,
    ops_of,
    simulated_precisions,
)
from ace_studio.records.recipes.plan import Precision
from tests.engine.quantize.simulate.plans import ALL, plan_of, simulated_in, simulator_of


def test_an_op_alone_differs_as_if_it_were_the_only_one_planned(program):
    simulator, examples = simulator_of(program)
    seen = {}

    def visit(op_id, precision, wide, rounded):
        seen[op_id, precision] = OpError(
            float(wide.double().square().sum()), float((wide - rounded).double().square().sum())
        )

    wanted = {op_id: ALL for op_id, node in ops_of(simulator.graph_module)}
    simulator.local(wanted, examples[0], visit=visit)
    assert {op_id for op_id, _ in seen} >= {
        op_id for op_id, node in ops_of(simulator.graph_module) if simulated_precisions(str(node.target))
    }
    for (op_id, precision), error in seen.items():
        planned = simulator.errors(plan_of(simulator, precision, only={op_id}), examples)[op_id]
        assert planned.sqnr_db == pytest.approx(error.sqnr_db, abs=0.01), (op_id, precision)


def test_a_style_changes_only_int8_static():
    for precision in (Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.FP16):
        found = {
            style.name: s.sqnr_db(plan, x)
            for style in (READS, PAIRS)
            for s, plan, x in [simulated_in(style, precision=precision)]
        }
        assert len(set(found.values())) == 1
