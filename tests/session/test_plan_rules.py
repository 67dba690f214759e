"""Rules are moved and replaced, and ticks take as few rules as they can."""

import pytest

from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.plan_index import PlanIndex
from ace_studio.session.plan_rules import Tick, module_match, tick, ticked, with_module, with_moved_rule
from tests.gui.graph_tables import layered_table, table_of

INT8 = Precision.INT8_STATIC
FP32 = Precision.FP32


def test_a_tick_on_a_module_is_one_rule_and_taking_it_back_is_none():
    index = PlanIndex(layered_table(3))
    plan = ticked(Plan(), index, "layers.1", on=True, precision=INT8)
    assert [rule.match for rule in plan.rules] == ["module:layers.1"]
    assert tick(index, plan, "layers.1") is Tick.ALL
    assert tick(index, plan, "layers") is Tick.SOME
    assert ticked(plan, index, "layers.1", on=False, precision=INT8).rules == ()


def test_a_tick_taken_off_inside_a_compressed_model_keeps_that_module_only():
    index = PlanIndex(layered_table(3))
    plan = ticked(Plan(default=INT8), index, "layers.1", on=False, precision=INT8)
    assert plan.rules == (_rule("module:layers.1", FP32),)
    assert tick(index, plan, "") is Tick.SOME
    assert ticked(plan, index, "", on=True, precision=INT8) == Plan(default=INT8)


def test_a_tick_on_a_parent_clears_the_ticks_inside_it():
    index = PlanIndex(layered_table(3))
    plan = ticked(Plan(), index, "layers.1.mlp", on=True, precision=Precision.BF16)
    plan = ticked(plan, index, "layers", on=True, precision=INT8)
    assert plan.rules == (_rule("module:layers", INT8),)


def test_rules_about_other_modules_with_a_like_name_stay():
    plan = Plan(rules=(_rule("module:layers.10", INT8), _rule("module:layers.1.mlp.*", INT8), _rule("op:x", INT8)))
    assert [rule.match for rule in with_module(plan, "layers.1", None).rules] == ["module:layers.10", "op:x"]


def test_a_tick_on_the_whole_model_changes_the_default():
    plan = with_module(Plan(rules=(_rule("module:a", FP32), _rule("type:Linear", FP32))), "", INT8)
    assert plan == Plan(default=INT8, rules=(_rule("type:Linear", FP32),))


def test_a_second_call_of_a_module_is_meant_by_the_rule_of_the_module():
    index = PlanIndex(
        table_of([("x", "input", ""), ("a_0", "aten.relu.default", "b"), ("a_1", "aten.relu.default", "b@1")])
    )
    assert index.rows_of(module_match("b@1")) == (1, 2)


@pytest.mark.parametrize(("start", "to", "order"), [(0, 2, "bca"), (2, 0, "cab"), (1, 9, "acb"), (1, -4, "bac")])
def test_a_rule_is_moved_within_the_list(start, to, order):
    plan = Plan(rules=tuple(_rule(f"id:{name}", INT8) for name in "abc"))
    assert "".join(rule.match[-1] for rule in with_moved_rule(plan, start, to).rules) == order


def _rule(match, precision):
    return PlanRule(match=match, precision=precision)
