"""Controls put into a recipe that a person wrote."""

from __future__ import annotations

import pytest

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.edit import add_controls
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind

ONE = CaptureControl(function="net:magic", treat_as=ControlKind.NONSTRICT_TRACE)
OTHER = CaptureControl(function="Special", treat_as=ControlKind.LEAF)
START = '# mine\nformat = 1\n\n[model]\nsource = "net.py"   # the net\n'
FORMS = {
    "none": START,
    "table": START + '\n[capture]\nrungs = ["dynamo"]  # only this\n\n[goal]\nmax_drop = 0.01\n',
    "tables": START + '\n[[capture.controls]]\nfunction = "a:b"\nas = "disable"  # why\n\n[measure]\nthreads = 2\n',
    "inline": START + '\n[capture]\ncontrols = [{ function = "a:b", as = "disable" }]\n',
    "no newline": START + "\n[measure]\nthreads = 2",
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
        assert line in text or line.startswith("controls"), line
    assert (tmp_path / "recipe.toml.bak").read_text() == FORMS[form]


def test_a_control_that_is_there_is_not_added_again(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(START)
    add_controls(path, [ONE])
    text = path.read_text()
    assert add_controls(path, [ONE]) == () and path.read_text() == text


def test_a_recipe_that_cannot_be_changed_stays_and_says_what_to_write(tmp_path):
    path = tmp_path / "recipe.toml"
    text = START.replace("[model]", "capture = { rungs = ['dynamo'] }\n[model]")  # closed: no table may extend it
    path.write_text(text)
    with pytest.raises(AceError) as caught:
        add_controls(path, [ONE])
    assert caught.value.problem.code is ErrorCode.RECIPE and 'function = "net:magic"' in caught.value.problem.remedy
    assert path.read_text() == text


def test_a_file_that_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(AceError):
        add_controls(tmp_path / "none.toml", [ONE])
