"""The form of precisions: the default, ticks on modules, rules, and the scheme of the numbers."""

from ace_studio.gui.panels.plan.forms import NO_GOAL
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Goal
from tests.gui.gestures import choose


def test_a_plan_that_waits_for_a_goal_that_nobody_set_says_that_nothing_would_be_compressed(desk):
    desk.traced()
    desk.session.plan.set_plan_from_goal(True)
    desk.session.choices.set_goal(Goal())
    about = desk.panel("plan").precision._about
    assert about.text() == NO_GOAL
    assert about.property("role") == "warn"
    desk.session.choices.set_goal(Goal(max_drop=0.01))
    desk.settle()
    assert about.text() != NO_GOAL
    assert about.property("role") == "dim"


def test_while_the_file_of_a_new_model_is_looked_at_the_plan_warns_of_nothing(desk, tmp_path):
    (tmp_path / "net.py").write_text("def make_model(): pass\n")
    desk.engine.by_itself = False
    desk.window.commands.open_path(str(tmp_path / "net.py"))
    about = desk.panel("plan").precision._about
    assert desk.document.recipe.plan.from_goal and not desk.document.recipe.goal.has_bound
    assert about.text() != NO_GOAL
    assert about.property("role") == "dim"


def test_the_default_precision_is_chosen_and_ends_planning_from_the_goal(desk, example_plan):
    choose(desk, example_plan.precision.default, "bf16")
    assert desk.document.recipe.plan.default is Precision.BF16
    choose(desk, example_plan.precision.default, "found from the goal")
    assert desk.document.recipe.plan.from_goal
