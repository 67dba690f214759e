"""A bound plan says what was requested, what is assigned, and why they differ."""

import msgspec

from ace_studio.engine.flow import BoundOp, BoundPlan
from ace_studio.records.recipes.plan import Plan, Precision, Scheme

INT8, BF16, FP32 = Precision.INT8_STATIC, Precision.BF16, Precision.FP32
PLAN = BoundPlan(
    Plan(default=INT8, group_size=16),
    {
        "linear": BoundOp(INT8, INT8, "default of the plan", Scheme(group_size=64)),
        "softmax": BoundOp(INT8, BF16, "no 8-bit kernel", Scheme(group_size=16)),
    },
)


def test_an_op_is_refused_if_it_gets_another_precision_than_requested():
    assert [op.is_refused for op in PLAN.ops.values()] == [False, True]


def test_everything_that_targets_read_is_the_assigned_precision():
    assert PLAN.ops_at(INT8) == {"linear"}
    assert PLAN.precisions == {INT8, BF16}
    assert PLAN.assigned == {"linear": INT8, "softmax": BF16}


def test_what_is_no_op_runs_in_fp32_and_has_the_grids_of_the_plan():
    assert PLAN.precision_of("an input") is FP32
    assert PLAN.scheme_of("an input").group_size == 16
    assert PLAN.scheme_of("linear").group_size == 64


def test_it_survives_the_way_to_another_process():
    assert msgspec.json.decode(msgspec.json.encode(PLAN), type=BoundPlan) == PLAN
