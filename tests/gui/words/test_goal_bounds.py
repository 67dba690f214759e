"""The bounds of a goal in words."""

from ace_studio.gui.words.goal_bounds import BOUNDS, goal_words
from ace_studio.records.recipes.recipe import Goal


def test_a_goal_is_told_in_the_units_of_its_boxes():
    words = goal_words(Goal(max_drop=0.01, max_size_mb=20.0))
    assert words.startswith("accuracy drop at most 1 %, size at most 20 MB, best ")


def test_every_bound_is_a_field_of_the_goal():
    assert all(hasattr(Goal(), bound.field) for bound in BOUNDS)
