"""Which low precisions a search tries, and the goal in words."""

from types import SimpleNamespace

import pytest

from ace_studio.engine.pipeline.compress.search.variants import (
    goal_words,
    has_much_besides_products,
    reads_weights_most,
    variants_of,
)
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import Goal, Objective, Recipe


def table(*ops, flops=64 * 2 * 1000, weight_bytes=4000):
    n = len(ops)
    return GraphTable(
        op_id=tuple(f"op{i}" for i in range(n)), kind=(OpKind.OP,) * n, op=ops, module=("",) * n, shape=("",) * n,
        dtype=("",) * n, device=("cpu",) * n, file=(-1,) * n, line=(0,) * n, flops=(flops,) * n,
        weight_bytes=(weight_bytes,) * n, output_bytes=(0,) * n, edge_source=(), edge_target=(),
    )  # fmt: skip


LINEAR = table("aten.linear.default")
NORMS = table("aten.linear.default", *("aten.layer_norm.default",) * 4)
TARGET = SimpleNamespace(
    name="t",
    available=lambda: SimpleNamespace(ok=True),
    precision_problem=lambda precision: "no kernel" if precision is Precision.INT8_STATIC else "",
    op_problem=lambda op, precision: "no kernel" if precision is Precision.INT8_DYNAMIC and "conv" in op else "",
)


def lows(graph, goal, *, plan=None, target=TARGET, has_data=True):
    recipe = Recipe(plan=plan or Plan(from_goal=True), goal=goal)
    job = SimpleNamespace(
        recipe=recipe, captured=SimpleNamespace(table=graph), state=SimpleNamespace(sensing=None, has_data=has_data)
    )
    return [(str(one.plan.default), str(one.plan.rest)) for one in variants_of(job, target)]


@pytest.mark.parametrize(("uses", "is_small_worth_it"), [(1, True), (4, True), (5, False), (0, False)])
def test_smaller_weights_are_faster_where_each_weight_is_used_a_few_times_only(uses, is_small_worth_it):
    assert reads_weights_most(table("aten.linear.default", flops=uses * 2000)) is is_small_worth_it


def test_what_the_target_cannot_do_is_not_tried():
    assert lows(LINEAR, Goal(min_sqnr_db=20)) == [("int8-dynamic", "fp32")]


@pytest.mark.parametrize("goal", [Goal(max_size_mb=1.0), Goal(max_drop=0.1, optimize=Objective.SIZE)])
def test_goals_of_size_try_smaller_weights_too(goal):
    assert [low for low, _ in lows(LINEAR, goal)] == ["int8-dynamic", "int4-weight", "int8-weight"]


def test_a_precision_that_hardly_any_arithmetic_would_have_is_tried_for_size_only():
    target = SimpleNamespace(**{**vars(TARGET), "precision_problem": lambda precision: ""})
    network = table(*("aten.conv2d.default",) * 10, "aten.linear.default")
    assert lows(network, Goal(min_sqnr_db=20), target=target) == [("int8-static", "fp32")]
    assert ("int8-dynamic", "fp32") in lows(network, Goal(max_size_mb=1.0), target=target)
    assert lows(LINEAR, Goal(min_sqnr_db=20), target=target) == [("int8-static", "fp32"), ("int8-dynamic", "fp32")]
    assert lows(network, Goal(min_sqnr_db=20)) == [("int8-dynamic", "fp32")]  # nothing else is left here


def test_without_data_nothing_that_needs_ranges_is_tried():
    target = SimpleNamespace(**{**vars(TARGET), "precision_problem": lambda precision: ""})
    assert lows(LINEAR, Goal(min_sqnr_db=20), target=target, has_data=False) == [("int8-dynamic", "fp32")]
    network = table(*("aten.conv2d.default",) * 10, "aten.linear.default")
    assert lows(network, Goal(min_sqnr_db=20), target=target, has_data=False) == []  # floats are


def test_much_besides_products_is_tried_at_16_bits_as_well():
    assert has_much_besides_products(NORMS)
    assert lows(NORMS, Goal(min_sqnr_db=20)) == [("int8-dynamic", "fp32"), ("int8-dynamic", "bf16")]


def test_a_recipe_with_a_plan_has_that_one_variant():
    assert lows(NORMS, Goal(min_sqnr_db=20), plan=Plan(default=Precision.INT8_STATIC)) == [("int8-static", "fp32")]


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (Goal(min_sqnr_db=30.0, max_drop=0.01), "allows the metric to drop by 1.00% and needs 30.0 dB"),
        (Goal(max_size_mb=3.0), "has room for it"),
    ],
)
def test_the_goal_is_told_in_words(goal, words):
    assert goal_words(goal) == words
