"""Changes of a recipe in memory, and of a recipe file that a person wrote."""

import os

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.edit import add_controls, with_changes
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.plan import PlanRule, Precision
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind, Goal, ModelChoice, PruneMethod, Recipe

RECIPE = Recipe(model=ModelChoice(source="net.py"), goal=Goal(max_drop=0.01))
RULES = {"plan": {"default": "int8-static", "rules": [{"match": "id:conv2d_3", "precision": "fp32"}]}}
ONE = CaptureControl(function="net:magic", treat_as=ControlKind.NONSTRICT_TRACE)
OTHER = CaptureControl(function="Special", treat_as=ControlKind.LEAF)
START = '# mine\nformat = 1\n\n[model]\nsource = "net.py"   # the net\n'
FORMS = {
    "none": START,
    "table": START + '\n[capture]\nrungs = ["dynamo"]  # only this\n\n[goal]\nmax_drop = 0.01\n',
    "tables": START + '\n[[capture.controls]]\nfunction = "a:b"\nas = "disable"  # why\n\n[measure]\nthreads = 2\n',
    "inline": START + '\n[capture]\ncontrols = [{ function = "a:b", as = "disable" }]\n',
    "no newline": START + "\n[measure]\nthreads = 2",
    "closed": START.replace("[model]", "capture = { rungs = ['dynamo'] }\n[model]"),
    "dotted": START.replace("[model]", 'capture.rungs = ["dynamo"]\n[model]'),
}


@pytest.mark.parametrize("form", FORMS)
def test_controls_are_added_and_everything_else_stays(tmp_path, form):
    path = tmp_path / "recipe.toml"
    path.write_text(FORMS[form])
    before = read_recipe(path)
    assert add_controls(path, [ONE, OTHER, ONE]) == (ONE, OTHER)
    after = read_recipe(path)
    assert after.capture.controls == (*before.capture.controls, ONE, OTHER)
    assert (after.model, after.goal, after.measure, after.capture.rungs) == (
        before.model, before.goal, before.measure, before.capture.rungs,
    )  # fmt: skip
    text = path.read_text()
    for line in FORMS[form].splitlines():
        assert line in text or line.startswith(("controls", "capture =")), line
    assert (tmp_path / "recipe.toml.bak").read_text() == FORMS[form]


def test_a_control_that_is_there_is_not_added_again(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(START)
    add_controls(path, [ONE])
    text = path.read_text()
    assert add_controls(path, [ONE]) == () and path.read_text() == text


def test_a_recipe_that_cannot_be_changed_stays_and_says_what_to_write(tmp_path, monkeypatch):
    path = tmp_path / "recipe.toml"
    path.write_text(START)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AceError, match="No space left") as caught:
        add_controls(path, [ONE])
    assert caught.value.problem.code is ErrorCode.RECIPE and 'function = "net:magic"' in caught.value.problem.remedy
    assert path.read_text() == START


def test_a_file_that_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(AceError):
        add_controls(tmp_path / "none.toml", [ONE])


def test_values_replace_what_is_there_and_the_rest_stays():
    changed = with_changes(RECIPE, {**RULES, "prune": {"method": "structured", "amount": 0.3}})
    assert changed.plan.default is Precision.INT8_STATIC
    assert changed.plan.rules == (PlanRule(match="id:conv2d_3", precision=Precision.FP32),)
    assert not changed.plan.from_goal
    assert (changed.prune.method, changed.prune.amount) == (PruneMethod.STRUCTURED, 0.3)
    assert (changed.model, changed.goal) == (RECIPE.model, RECIPE.goal)


def test_a_second_change_replaces_the_rules_of_the_first():
    once = with_changes(RECIPE, RULES)
    other = [{"match": "module:head", "precision": "bf16"}]
    assert with_changes(once, {"plan": {"rules": other}}).plan.rules == (
        PlanRule(match="module:head", precision=Precision.BF16),
    )


def test_none_takes_a_key_out():
    assert with_changes(RECIPE, {"goal": {"max_drop": None, "min_sqnr_db": 30.0}}).goal == Goal(min_sqnr_db=30.0)


def test_a_change_that_makes_no_recipe_is_refused():
    with pytest.raises(AceError) as caught:
        with_changes(RECIPE, {"prune": {"amount": 2.0}, "plan": {"default": "int3"}})
    assert {one.code for one in caught.value.problems} == {ErrorCode.RECIPE}
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("prune", "amount", 0.0), ("prune", "amount", 1.0), ("prune", "pattern", "4:2"), ("prune", "pattern", "two"),
        ("prune", "ignore", ["op:conv2d"]), ("prune", "ignore", ["head"]), ("prune", "round_to", 0),
        ("prune", "method", "magic"), ("prune", "importance", "guess"), ("finetune", "method", "train"),
        ("finetune", "loss", "loss"), ("finetune", "epochs", 0), ("finetune", "learning_rate", 0.0),
        ("finetune", "held_out", 1.0), ("finetune", "max_seconds", 0.0), ("finetune", "data", "not a name"),
        ("advice_from", "quantity", "luck"),
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_refused_where_they_stand(table, key, value):
    with pytest.raises(AceError) as caught:
        with_changes(RECIPE, {table: {key: value}})
    assert caught.value.problem.code is ErrorCode.RECIPE and caught.value.problem.where.startswith(
        "the changed recipe:"
    )
