"""Rules for a selection: they select exactly these ops, and are few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.plan_index import PlanIndex
from ace_studio.session.verbs.plan import covering_matches, with_precision_of_ops
from tests.gui.graph_tables import large_table, layered_table, tables

INDEX = PlanIndex(layered_table(4))
INT8 = Precision.INT8_STATIC


@given(st.data())
def test_the_rules_select_exactly_the_ops_and_never_more_than_one_each(data):
    index = PlanIndex(data.draw(tables()))
    wanted = data.draw(st.sets(st.sampled_from(index.rows))) if index.rows else set()
    matches = covering_matches(index, wanted)
    assert {row for match in matches for row in index.rows_of(match)} == wanted
    assert len(matches) <= len(wanted)


@pytest.mark.parametrize(
    ("op_ids", "matches"),
    [
        (("linear_1", "act_1", "add_1"), ("module:layers.1",)),
        (("linear_1", "act_1"), ("module:layers.1.mlp",)),
        (("add_0", "add_1", "add_2", "add_3"), ("op:aten.add.Tensor",)),
        (("act_0", "add_0", "linear_0", "act_3"), ("module:layers.0", "id:act_3")),
        (("x", "linear_2", "output"), ("id:linear_2",)),
        (INDEX.op_ids, ("module:*",)),
        ((), ()),
    ],
)
def test_whole_modules_and_operators_are_named_instead_of_their_ops(op_ids, matches):
    assert [rule.match for rule in with_precision_of_ops(Plan(), INDEX, op_ids, INT8).rules] == list(matches)


def test_rules_about_nothing_but_these_ops_are_replaced_and_others_stay():
    before = Plan(
        rules=tuple(PlanRule(match=match, precision=INT8) for match in ("id:add_1", "module:layers", "id:no"))
    )
    after = with_precision_of_ops(before, INDEX, ("linear_1", "act_1", "add_1"), Precision.BF16)
    assert [rule.match for rule in after.rules] == ["module:layers", "id:no", "module:layers.1"]
    cleared = with_precision_of_ops(after, INDEX, ("linear_1", "act_1", "add_1"), None)
    assert [rule.match for rule in cleared.rules] == ["module:layers", "id:no"]


def test_a_stage_of_a_thousand_ops_is_one_rule():
    table = large_table(3000)
    index = PlanIndex(table)
    stage = {row for row in index.rows if table.module[row].startswith("stage1.")}
    assert covering_matches(index, stage) == ("module:stage1",)
