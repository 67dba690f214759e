"""What an advice card changes, for the window that shows it."""

from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import AdviceOrigin, Recipe
from ace_studio.session.advice import change_words, ops_of_advice, without_origin
from ace_studio.session.document import Document
from tests.gui.graph_tables import layered_table


def card(**change) -> Advice:
    return Advice(
        kind="k", title="t", why="w", estimate="e", quantity=AdviceQuantity.LATENCY, estimated_gain=1.0, change=change
    )


RULES = [{"match": "op:aten.linear.default", "precision": "bf16"}, {"match": "id:act_0", "precision": "fp32"}]


def test_a_card_is_about_the_ops_that_its_new_rules_match_in_the_order_of_the_graph():
    table = layered_table(1)
    have = Recipe(plan=Plan(rules=(PlanRule(match="op:aten.linear.default", precision=Precision.BF16),)))
    assert ops_of_advice(card(plan={"rules": RULES}), Document(graph=table, recipe=have)) == ("act_0",)
    ids = ops_of_advice(card(plan={"rules": RULES}), Document(graph=table))
    assert "stem_linear" in ids and list(ids) == [one for one in table.op_id if one in ids]


def test_a_card_without_rules_or_without_a_graph_is_about_no_ops():
    assert ops_of_advice(card(plan={"default": "bf16"}), Document(graph=layered_table(1))) == ()
    assert ops_of_advice(card(plan={"rules": RULES}), Document()) == ()


def test_changes_are_said_a_line_per_key():
    change = card(plan={"default": "bf16", "rules": RULES}, goal={"max_drop": None}, targets={"names": ["a", "b"]})
    assert change_words(change) == [
        "plan.default = bf16", "plan.rules: 2 in all", "goal.max_drop is removed", "targets.names = a, b",
    ]  # fmt: skip


def test_a_recipe_forgets_the_card_that_it_came_from():
    assert without_origin(Recipe(advice_from=AdviceOrigin(kind="k"))) == Recipe()
