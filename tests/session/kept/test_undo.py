"""Steps of undo: taken back, put back, merged, bounded."""

from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.kept import undo
from ace_studio.session.kept.undo import MERGE_WITHIN_S, UndoStack


def recipe(source: str) -> Recipe:
    return Recipe(model=ModelChoice(source=source))


def stack_at(times: list[float]) -> UndoStack:
    return UndoStack(iter(times).__next__)


def test_a_step_that_was_taken_back_can_be_put_back_until_another_is_made():
    stack = stack_at([0.0, 10.0])
    stack.push("one", recipe("a"), recipe("b"))
    assert stack.undo() == recipe("a") and stack.redo_label == "one"
    assert stack.redo() == recipe("b")
    stack.undo()
    stack.push("two", recipe("a"), recipe("c"))
    assert (stack.undo_label, stack.redo_label, stack.redo()) == ("two", "", None)


def test_edits_of_one_subject_in_quick_succession_are_one_step_and_slow_ones_are_two():
    stack = stack_at([0.0, MERGE_WITHIN_S, 10.0])
    for before, after in ("ab", "bc", "cd"):
        stack.push("entry", recipe(before), recipe(after), subject="entry")
    assert (stack.undo(), stack.undo(), stack.undo()) == (recipe("c"), recipe("a"), None)


def test_a_merged_step_that_ends_where_it_began_is_no_step():
    stack = stack_at([0.0, 0.1])
    stack.push("entry", recipe("a"), recipe("b"), subject="entry")
    stack.push("entry", recipe("b"), recipe("a"), subject="entry")
    assert stack.undo_label == ""


def test_the_oldest_steps_are_forgotten(monkeypatch):
    monkeypatch.setattr(undo, "LIMIT", 2)
    stack = stack_at([0.0, 10.0, 20.0])
    for before, after in ("ab", "bc", "cd"):
        stack.push("x", recipe(before), recipe(after))
    assert (stack.undo(), stack.undo(), stack.undo()) == (recipe("c"), recipe("b"), None)


def test_every_step_follows_the_recipe_to_another_folder():
    stack = stack_at([0.0])
    stack.push("x", recipe("a"), recipe("b"))
    stack.rewrite(lambda old: recipe(f"../{old.model.source}"))
    assert stack.undo() == recipe("../a") and stack.redo() == recipe("../b")
