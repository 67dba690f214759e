"""The form of the goal: its bounds, and what to optimise among the candidates that meet them."""

import pytest


def test_a_goal_is_shown_in_percent_and_kept_as_a_fraction(desk, example_plan):
    number = example_plan.goal.numbers["max_drop"]
    assert number.value() == pytest.approx(1.0)
    number.setValue(2.5)
    desk.settle()
    assert desk.document.recipe.goal.max_drop == pytest.approx(0.025)


def test_a_bound_that_is_switched_off_is_gone(desk, example_plan):
    example_plan.goal.checks["max_drop"].click()
    desk.settle()
    assert desk.document.recipe.goal.max_drop is None
    assert not example_plan.goal.numbers["max_drop"].isEnabled()
