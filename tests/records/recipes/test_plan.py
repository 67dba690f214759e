"""Rules select ops, and the last one that does decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import (
    Plan,
    PlanRule,
    Precision,
    idle_rules,
    resolve_plan,
    rule_matches,
    rule_problem,
)


def table() -> GraphTable:
    """Input, two convolutions in two layers, a linear at the root, output."""
    rows = 5
    return GraphTable(
        op_id=("x", "conv_1", "conv_2", "linear", "output"),
        kind=(OpKind.INPUT, OpKind.OP, OpKind.OP, OpKind.OP, OpKind.OUTPUT),
        op=("input", "aten.conv2d.default", "aten.conv2d.default", "aten.linear.default", "output"),
        module=("", "layer1.conv", "layer10.conv@1", "", ""),
        shape=("1",) * rows,
        dtype=("float32",) * rows,
        device=("cpu",) * rows,
        file=(-1,) * rows,
        line=(0,) * rows,
        flops=(0,) * rows,
        weight_bytes=(0,) * rows,
        output_bytes=(0,) * rows,
        edge_source=(0, 1, 2, 3),
        edge_target=(1, 2, 3, 4),
        module_paths=("layer1", "layer1.conv", "layer10", "layer10.conv@1"),
        module_types=("Block", "Conv2d", "Block", "Conv2d"),
        name="Net",
    )


def planned(*rules: tuple[str, Precision], default: Precision = Precision.FP32) -> dict[str, Precision]:
    """Op id -> precision under these rules."""
    plan = Plan(default=default, rules=tuple(PlanRule(match=match, precision=precision) for match, precision in rules))
    return {op.op_id: op.precision for op in resolve_plan(plan, table())}


def test_only_ops_are_planned_not_inputs_and_outputs():
    assert list(planned()) == ["conv_1", "conv_2", "linear"]


@pytest.mark.parametrize(
    ("match", "selected"),
    [
        ("module:layer1", {"conv_1"}),
        ("module:layer1.*", {"conv_1"}),
        ("module:layer1*", {"conv_1", "conv_2"}),
        ("module:layer10.conv", {"conv_2"}),
        ("op:aten.conv2d.default", {"conv_1", "conv_2"}),
        ("op:*linear*", {"linear"}),
        ("type:Conv2d", {"conv_1", "conv_2"}),
        ("type:Net", {"linear"}),
        ("id:conv_2", {"conv_2"}),
        ("id:*", {"conv_1", "conv_2", "linear"}),
        ("id:CONV_2", set()),
    ],
)
def test_a_rule_selects_what_its_text_says(match, selected):
    result = planned((match, Precision.BF16))
    assert {op for op, precision in result.items() if precision is Precision.BF16} == selected


def test_the_last_matching_rule_wins_and_says_so():
    plan = Plan(
        default=Precision.INT8_STATIC,
        rules=(
            PlanRule(match="type:Conv2d", precision=Precision.BF16),
            PlanRule(match="id:conv_2", precision=Precision.FP32),
        ),
    )
    resolved = {op.op_id: (op.precision, op.reason) for op in resolve_plan(plan, table())}
    assert resolved["conv_1"] == (Precision.BF16, "rule type:Conv2d")
    assert resolved["conv_2"] == (Precision.FP32, "rule id:conv_2")
    assert resolved["linear"] == (Precision.INT8_STATIC, "default of the plan")


@pytest.mark.parametrize("match", ["", "layer1", "modul:x", "module:", "module:  ", ":x", "TYPE:x"])
def test_a_malformed_rule_is_told(match):
    assert rule_problem(match)


@given(st.sampled_from(["module", "op", "type", "id"]), st.text(min_size=1).filter(str.strip))
def test_any_pattern_after_a_known_kind_is_well_formed_and_can_be_tried(kind, pattern):
    match = f"{kind}:{pattern}"
    assert rule_problem(match) is None
    rule_matches(match, op_id="a", op="b", module="c.d", module_type="E")


def test_only_static_int8_needs_calibration():
    assert [precision for precision in Precision if precision.needs_calibration] == [Precision.INT8_STATIC]


def test_a_rule_that_matches_no_op_is_idle():
    matches = ("module:layer1.*", "module:layer7.*", "type:Conv2d", "type:Net", "op:nothing")
    plan = Plan(rules=tuple(PlanRule(match=match, precision=Precision.FP32) for match in matches))
    assert idle_rules(plan, table()) == ("module:layer7.*", "op:nothing")
