"""Recipes survive the file, and every mistake in one is told with its line."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.recipes.file import parse_recipe, parse_toml, read_recipe, recipe_text, write_recipe
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, InputsChoice, ModelChoice, Recipe, TargetsChoice
from ace_studio.records.tensors import DimChoice, TensorSpec
from tests.records.any_recipe import recipes
from tests.records.recipe_problems import MINIMAL, problems_of


@given(recipe=recipes())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_recipe_survives_being_written_and_read(recipe):
    assert parse_recipe(recipe_text(recipe), name="r") == recipe


def test_a_recipe_survives_the_file(tmp_path):
    recipe = Recipe(
        model=ModelChoice(source="m.py", entry="make"),
        inputs=InputsChoice(rows=({"x": TensorSpec(shape=(1, 3))},), dims={"x.0": DimChoice.DYNAMIC}),
        plan=Plan(default=Precision.INT8_STATIC, rules=(PlanRule(match="type:Linear", precision=Precision.FP32),)),
    )
    write_recipe(recipe, tmp_path / "r.toml")
    assert read_recipe(tmp_path / "r.toml") == recipe


def test_the_example_of_the_format_is_read():
    text = """
format = 1
[model]
source = "model.py"
entry  = "make_model"
weights = "weights.safetensors"
[inputs]
[[inputs.rows]]
x = { shape = [1, 3, 224, 224], dtype = "float32", values = "random" }
[inputs.dims]
"x.0" = "dynamic"
[capture]
rungs = ["export", "export-strict", "dynamo", "fx", "partial"]
[[capture.controls]]
function = "model:get_magic_num"
as = "nonstrict_trace"
[calibration]
inputs = "calibration_inputs"
samples = 64
[evaluate]
function = "evaluate"
higher_is_better = true
[plan]
default = "int8-static"
[[plan.rules]]
match = "module:layer1.*"
precision = "fp32"
[goal]
max_drop = 0.01
optimize = "latency"
[measure]
threads = "all"
rounds = 30
[targets]
names = ["auto"]
"""
    recipe = parse_recipe(text, name="r")
    assert recipe.capture.controls[0].treat_as == "nonstrict_trace"
    assert recipe.inputs.rows[0]["x"].shape == (1, 3, 224, 224)
    assert recipe.measure.threads == "all"


def test_defaults_are_left_out_so_that_files_stay_short():
    recipe = Recipe(model=ModelChoice(source="m.py"), goal=Goal(max_drop=0.01))
    assert recipe_text(recipe) == 'format = 1\n\n[model]\nsource = "m.py"\n\n[goal]\nmax_drop = 0.01\n'


def test_all_problems_are_told_at_once_each_with_its_line():
    found = problems_of(
        """format = 1
[model]
source = "m.py"
entri = "make"
[plan]
default = "int8"
rules = [
    { match = "modul:x", precision = "fp32" },
    { match = "type:Linear", precision = "fp31" },
]
[goal]
max_drop = 1.5
[measure]
threads = 0
rounds = "many"
[targets]
names = ["auto", "openvno"]
"""
    )
    assert [line for line, _ in found] == [4, 6, 8, 9, 12, 14, 15, 17]
    assert "did you mean 'entry'" in found[0][1]
    assert "int8-static" in found[1][1]
    assert "did you mean 'fp32'" in found[3][1]
    assert "did you mean 'openvino'" in found[-1][1]


def test_a_missing_format_is_told_beside_the_other_problems():
    found = problems_of("[model]\nsource = 'm.py'\n[goal]\nmax_drop = 2\n")
    assert [line for line, _ in found] == [1, 4]
    assert "format = 1" in found[0][1]


def test_a_newer_format_is_only_told_to_update():
    ((line, text),) = problems_of("format = 2\n[what]\never = 1\n")
    assert line == 1
    assert "update" in text


@pytest.mark.parametrize("value", ["0", "-1", '"1"', "true", "1.0"])
def test_a_format_that_is_none_is_an_error(value):
    ((line, _),) = problems_of(f"format = {value}\n[model]\nsource = 'm.py'\n")
    assert line == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("format = 1\n[model\n", 2),
        ("format = 1\n[model]\nsource = m.py\n", 3),
        ("format = 1\nformat = 1\n", 2),
        ('format = 1\n[model]\nsource = "m.py', 3),
    ],
)
def test_a_syntax_error_has_its_line(text, line):
    ((found, told),) = problems_of(text)
    assert found == line
    assert "not valid TOML" in told


def test_deep_nesting_is_a_problem_not_a_crash():
    ((_, told),) = problems_of("a = " + "[" * 100_000)
    assert "nests too deeply" in told or "not valid TOML" in told


@given(st.text(max_size=200))
@settings(deadline=None)
def test_no_text_does_anything_but_parse_or_give_problems(text):
    try:
        parse_recipe(text, name="r")
    except AceError as error:
        assert all(problem.code is ErrorCode.RECIPE for problem in error.problems)


@given(recipe=recipes(), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_mutated_recipe_parses_or_gives_problems_with_lines(recipe, data):
    text = recipe_text(recipe)
    place = data.draw(st.integers(0, len(text)))
    mutated = text[:place] + data.draw(st.text(max_size=5)) + text[place + data.draw(st.integers(0, 5)) :]
    try:
        parse_recipe(mutated, name="r")
    except AceError as error:
        assert all(1 <= int(p.where.rpartition(":")[2]) <= mutated.count("\n") + 2 for p in error.problems)


# --- files ---


def test_a_missing_file_is_not_found_and_exits_with_usage(tmp_path):
    with pytest.raises(AceError) as caught:
        read_recipe(tmp_path / "no.toml")
    assert caught.value.problem.code is ErrorCode.NOT_FOUND
    assert caught.value.problem.exit_code is ExitCode.USAGE


def test_a_folder_is_told_apart(tmp_path):
    with pytest.raises(AceError, match="is a folder"):
        read_recipe(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [("format = 1\n# ä".encode("latin-1"), "byte 0xe4"), ("format = 1".encode("utf-16"), "UTF-16")],
)
def test_text_that_is_not_utf8_is_told_apart(tmp_path, content, words):
    path = tmp_path / "r.toml"
    path.write_bytes(content)
    with pytest.raises(AceError, match=words):
        read_recipe(path)


def test_the_byte_order_mark_of_windows_editors_is_accepted(tmp_path):
    path = tmp_path / "r.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert read_recipe(path).model.source == "model.py"


def test_a_huge_file_is_no_recipe(tmp_path):
    path = tmp_path / "r.toml"
    with path.open("wb") as file:
        file.truncate(10_000_000)
    with pytest.raises(AceError, match="too large"):
        read_recipe(path)


def test_a_failing_save_is_told_and_leaves_the_old_recipe(tmp_path, monkeypatch):
    path = tmp_path / "r.toml"
    old = Recipe(model=ModelChoice(source="old.py"))
    write_recipe(old, path)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AceError, match="No space left") as caught:
        write_recipe(Recipe(model=ModelChoice(source="new.py")), path)
    assert caught.value.problem.remedy
    assert read_recipe(path) == old


def test_saving_keeps_the_recipe_before_as_backup(tmp_path):
    path = tmp_path / "r.toml"
    for name in ("eager", "openvino"):
        recipe = Recipe(model=ModelChoice(source="m.py"), targets=TargetsChoice(names=(name,)))
        write_recipe(recipe, path)
    assert read_recipe(tmp_path / "r.toml.bak").targets.names == ("eager",)


def test_a_name_that_no_file_can_hold_is_an_error(tmp_path):
    with pytest.raises(AceError, match="could not be saved"):
        write_recipe(Recipe(model=ModelChoice(source="\ud800")), tmp_path / "r.toml")


@pytest.mark.parametrize("text", ["form at", "format = 1\n[model]\nsource = 3\n"])
def test_problems_of_a_text_with_a_byte_order_mark_name_the_same_lines(text):
    told = []
    for mark in ("", "\ufeff"):
        with pytest.raises(AceError) as caught:
            parse_recipe(mark + text, name="a.toml")
        told.append(caught.value.problems)
    assert told[0] == told[1]
    assert parse_toml("\ufeffformat = 1", "a.toml") == {"format": 1}
