"""Rules select ops, and the last one that does decides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision, rule_matches
from ace_studio.records.recipes.plan_index import PlanIndex
from tests.gui.graph_tables import layered_table, tables

matches = st.sampled_from(
    ["module:a.*", "module:a", "module:*", "module:b.0", "op:aten.conv2d.*", "op:aten.add.Tensor", "type:Block",
     "type:*", "id:op_1", "id:op_?", "id:nothing", "module:[ab]"]
)  # fmt: skip
rules = st.lists(
    st.builds(
        PlanRule, match=matches, precision=st.sampled_from(list(Precision)), group_size=st.sampled_from([None, 64])
    ),
    max_size=5,
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
    return {op.op_id: op.precision for op in PlanIndex(table()).resolve(plan)}


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
    resolved = {op.op_id: (op.precision, op.reason) for op in PlanIndex(table()).resolve(plan)}
    assert resolved["conv_1"] == (Precision.BF16, "rule type:Conv2d")
    assert resolved["conv_2"] == (Precision.FP32, "rule id:conv_2")
    assert resolved["linear"] == (Precision.INT8_STATIC, "default of the plan")


def test_a_rule_that_matches_no_op_is_idle():
    matches = ("module:layer1.*", "module:layer7.*", "type:Conv2d", "type:Net", "op:nothing")
    plan = Plan(rules=tuple(PlanRule(match=match, precision=Precision.FP32) for match in matches))
    assert PlanIndex(table()).idle_rules(plan) == ("module:layer7.*", "op:nothing")


@settings(max_examples=80, deadline=None)
@given(table=tables(), default=st.sampled_from(list(Precision)), listed=rules)
def test_the_index_gives_every_op_what_the_last_matching_rule_says(table, default, listed):
    plan = Plan(default=default, rules=tuple(listed))
    types = dict(zip(table.module_paths, table.module_types, strict=True))
    expected = []
    for row in table.op_rows():
        module = table.module[row]
        kind = types.get(module, "" if module else table.name)
        names = {"op_id": table.op_id[row], "op": table.op[row], "module": module, "module_type": kind}
        rule = next((rule for rule in reversed(plan.rules) if rule_matches(rule.match, **names)), None)
        scheme = plan.scheme if rule is None else rule.scheme(plan)
        expected.append((table.op_id[row], default if rule is None else rule.precision, scheme))
    assert [(one.op_id, one.precision, one.scheme) for one in PlanIndex(table).resolve(plan)] == expected


def test_a_rule_says_how_many_ops_it_matches_and_how_many_a_later_rule_took():
    table = layered_table(3)
    plan = Plan(
        rules=(
            PlanRule(match="op:aten.linear.default", precision=Precision.INT8_STATIC),
            PlanRule(match="module:layers.0", precision=Precision.FP32),
            PlanRule(match="id:typo", precision=Precision.FP32),
        )
    )
    assert PlanIndex(table).counts(plan) == ((4, 3), (3, 3), (0, 0))


@given(tables())
def test_a_module_holds_the_ops_of_the_modules_in_it(graph):
    index = PlanIndex(graph)
    for path, rows in index.inside.items():
        assert set(rows) == {row for row in index.rows if not path or f"{graph.module[row]}.".startswith(f"{path}.")}
        assert len(rows) == len(set(rows))
    assert set(index.by_path) <= set(index.inside)


def test_the_rule_for_one_op_selects_it_whatever_signs_its_name_has():
    index = PlanIndex(replace(table(), op_id=("x", "a[0]", "what?", "a*", "output")))
    for row in index.rows:
        assert index.rows_of(index.match_of_row[row]) == (row,)
    assert index.rows_of("id:a[0]") == ()
    assert index.rows_of("id:a0") == ()


def test_the_rows_of_all_ids_are_those_of_the_ops():
    index = PlanIndex(table())
    assert index.rows_of_ops(index.op_ids) == index.rows_of_ops((*index.op_ids, "nothing")) == [1, 2, 3]
