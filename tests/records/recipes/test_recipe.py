"""What follows from the choices of a recipe."""

import pytest

from ace_studio.records.recipes.recipe import METRIC_NAMES, EvaluateChoice, Goal, Recipe


@pytest.mark.parametrize("own", [True, False])
def test_a_built_in_metric_has_its_own_direction(own):
    lower = {name for name in METRIC_NAMES if not EvaluateChoice(metric=name, higher_is_better=own).is_higher_better}
    assert lower == {"mse", "perplexity"}  # a new error or loss belongs here and into LOWER_IS_BETTER


def test_the_direction_of_a_users_own_metric_is_the_users():
    assert not EvaluateChoice(function="f", higher_is_better=False).is_higher_better


@pytest.mark.parametrize(
    ("goal", "has_bound", "bounds_accuracy"),
    [
        (Goal(), False, False),
        (Goal(max_drop=0.0), True, True),
        (Goal(min_sqnr_db=30.0), True, True),
        (Goal(max_size_mb=1.0), True, False),
        (Goal(max_latency_ratio=0.5), True, False),
    ],
)
def test_a_goal_knows_what_it_bounds(goal, has_bound, bounds_accuracy):
    assert (goal.has_bound, goal.bounds_accuracy) == (has_bound, bounds_accuracy)


def test_a_recipe_without_a_plan_leaves_the_precisions_to_the_goal():
    assert Recipe().plan.from_goal
