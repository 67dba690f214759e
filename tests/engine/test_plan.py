"""A bound plan never asks a target for what it cannot do, and keeps the reason."""

import msgspec

from ace_studio.engine.plan import bind_plan, plan_problem
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision


def table(*ops):
    n = len(ops)
    return GraphTable(
        op_id=tuple(f"op_{i}" for i in range(n)), kind=(OpKind.OP,) * n, op=ops,
        module=tuple(f"layer{i}" for i in range(n)), shape=("1",) * n, dtype=("float32",) * n, device=("cpu",) * n,
        file=(-1,) * n, line=(0,) * n, flops=(0,) * n, weight_bytes=(0,) * n, output_bytes=(0,) * n,
        edge_source=(), edge_target=(), module_paths=tuple(f"layer{i}" for i in range(n)), module_types=("Linear",) * n,
    )  # fmt: skip


def only_linear(op, precision):
    return "" if "linear" in op else f"no {precision} kernel for {op}"


GRAPH = table("aten.linear.default", "aten.softmax.int")


def test_an_op_that_the_target_refuses_stays_fp32_with_the_reason():
    bound = bind_plan(Plan(default=Precision.INT8_STATIC), GRAPH, op_problem=only_linear)
    assert bound.assigned == {"op_0": Precision.INT8_STATIC, "op_1": Precision.FP32}
    assert bound.ops["op_1"].reason == "no int8-static kernel for aten.softmax.int"
    assert [op.requested for op in bound.ops.values()] == [Precision.INT8_STATIC] * 2
    assert [op.is_refused for op in bound.ops.values()] == [False, True]


def test_the_last_matching_rule_decides_and_is_named():
    rules = (
        PlanRule(match="type:Linear", precision=Precision.BF16),
        PlanRule(match="module:layer0", precision=Precision.FP32),
    )
    bound = bind_plan(Plan(default=Precision.INT8_STATIC, rules=rules), GRAPH, op_problem=lambda op, precision: "")
    assert bound.assigned == {"op_0": Precision.FP32, "op_1": Precision.BF16}
    assert bound.ops["op_0"].reason == "rule module:layer0"


def test_a_plan_of_which_nothing_is_left_is_pointless_and_fp32_never_is():
    refuse = bind_plan(Plan(default=Precision.FP8), GRAPH, op_problem=lambda op, precision: "no")
    assert "fp8" in plan_problem(refuse)
    kept = bind_plan(Plan(default=Precision.INT8_STATIC), GRAPH, op_problem=only_linear)
    assert plan_problem(kept) == ""
    plain = bind_plan(Plan(), GRAPH, op_problem=lambda op, precision: "no")
    assert plan_problem(plain) == ""
    idle = PlanRule(match="module:elsewhere", precision=Precision.FP8)
    assert plan_problem(bind_plan(Plan(rules=(idle,)), GRAPH, op_problem=only_linear)) == ""


def test_ops_in_float64_are_left_as_they_are_and_a_plan_for_nothing_else_says_so():
    wide = msgspec.structs.replace(table("aten.linear.default"), dtype=("float64",))
    plan = Plan(default=Precision.BF16)
    bound = bind_plan(plan, wide, op_problem=lambda op, precision: "")
    assert bound.assigned == {"op_0": Precision.FP32}
    assert "float64" in plan_problem(bound)


def test_the_rest_is_what_an_op_runs_at_that_the_target_cannot_run_as_planned():
    plan = Plan(default=Precision.INT8_STATIC, rest=Precision.BF16)
    bound = bind_plan(plan, GRAPH, op_problem=lambda op, one: "" if one is Precision.BF16 else only_linear(op, one))
    assert bound.assigned == {"op_0": Precision.INT8_STATIC, "op_1": Precision.BF16}
    assert bound.ops["op_1"].reason == "no int8-static kernel for aten.softmax.int"
    assert plan.label == "int8-static + bf16"
    assert bind_plan(plan, GRAPH, op_problem=only_linear).precision_of("op_1") is Precision.FP32
