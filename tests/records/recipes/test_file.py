"""Recipes survive the file, and every mistake in one is told with its line."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.recipes.file import parse_recipe, read_recipe, recipe_text, write_recipe
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, InputsChoice, ModelChoice, Recipe, TargetsChoice
from ace_studio.records.tensors import DimChoice, TensorSpec
from tests.records.any_recipe import recipes

MINIMAL = 'format = 1\n[model]\nsource = "model.py"\n'


def problems_of(text: str) -> list[tuple[int, str]]:
    """Line and text (all parts) of each problem."""
    with pytest.raises(AceError) as caught:
        parse_recipe(text, name="r.toml")
    assert {problem.code for problem in caught.value.problems} == {ErrorCode.RECIPE}
    assert all(problem.remedy for problem in caught.value.problems)
    return [(int(problem.where.removeprefix("r.toml:")), problem.as_text()) for problem in caught.value.problems]


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


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("[goal]\nmax_drop = -0.1", 5, "at least 0"),
        ("[goal]\nmax_drop = nan", 5, "finite"),
        ("[goal]\nmax_latency_ratio = 0", 5, "above 0"),
        ("[goal]\nmax_size_mb = -1", 5, "above 0"),
        ("[goal]\noptimize = 'speed'", 5, "something to optimize"),
        ("[goal]\nthreads = 4", 5, "it belongs in [measure]"),
        ("[measure]\nrounds = 0", 5, "at least 1"),
        ("[measure]\nrounds = true", 5, "true/false"),
        ("[measure]\nrounds = 2.5", 5, "a number"),
        ("[measure]\nthreads = 'some'", 5, "'all'"),
        ("[measure]\nthreads = true", 5, "true/false"),
        ("[measure]\ndevice = 'gpu'", 5, "not a device"),
        ("[measure]\nrounds = 99999999999999999999", 5, "too large"),
        ("[calibration]\nsamples = 0", 5, "at least 1"),
        ("[capture]\nrungs = ['exprot']", 5, "did you mean 'export'"),
        ("[capture]\nrungs = []", 5, "names no capture method"),
        ("[capture]\nrungs = ['fx', 'fx']", 5, "twice"),
        ("[capture]\ntime_limit_s = 0", 5, "above 0"),
        ("[[capture.controls]]\nfunction = 'f'", 4, "has no 'as'"),
        ("[[capture.controls]]\nfunction = 'f'\nas = 'leef'", 6, "did you mean 'leaf'"),
        ("[targets]\nnames = []", 5, "names no target"),
        ("[targets]\nnames = 'auto'", 5, "a list"),
        ("[evaluate]\nfunction = 'a b'", 5, "does not name a function"),
        ("[evaluate]\nmetric = 'top1'\ndata = 'held_out'", 5, "is not a metric"),
        ("[evaluate]\nmetric = 'top-1'", 5, "has no data"),
        ("[evaluate]\ndata = 'held_out.npz'", 5, "no metric"),
        ("[evaluate]\nmetric = 'mse'\ndata = 'a b.csv'", 6, "neither a function nor a file"),
        ("[evaluate]\nfunction = 'score'\nmetric = 'mse'\ndata = 'held_out'", 6, "both a function and a metric"),
        ("[measure]\nbatches = [1, 0]", 5, "at least 1"),
        ("[measure]\ndecode = { tokens = 8 }", 5, "which input takes the token"),
        ("[measure]\ndecode = { token = 'x', tokens = 1 }", 5, "two tokens"),
        ("[evaluate]\nfunction = 3", 5, "a whole number"),
        ("[evaluate]\nhigher_is_better = 'yes'", 5, "true or false"),
        ("[inputs]\nrows = [{}]", 5, "is empty"),
        ("[inputs]\nrows = [{ x = 3 }]", 5, "a table"),
        ("[inputs]\nrows = [{ x = { shape = [1.5] } }]", 5, "a whole number"),
        ("[inputs]\nrows = [{ x = { shape = [-1] } }]", 5, "cannot be negative"),
        ("[inputs]\nrows = [{ x = { dtype = 'float32' } }]", 5, "has no 'shape'"),
        ("[inputs]\nrows = [{ x = { shape = [1], dtype = 'float31' } }]", 5, "did you mean 'float32'"),
        ("[inputs]\nrows = [{ x = { shape = [1], values = 'zeroes' } }]", 5, "did you mean 'zeros'"),
        ("[inputs]\nrows = [{ x = { shape = [1], values = 'file' } }]", 5, "the file's path"),
        ("[[inputs.rows]]\nx = { shape = [1] }\n[[inputs.rows]]\ny = { shape = [1] }", 6, "the first row gives x"),
        ("[inputs]\ntracing = 'f'\n[[inputs.rows]]\nx = { shape = [1] }", 6, "both tracing inputs and rows"),
        ("[inputs.dims]\n'x' = 'dynamic'", 5, "does not name a dimension"),
        ("[inputs.dims]\n'x.0' = 'dinamic'", 5, "did you mean 'dynamic'"),
        ("[inputs]\nrows = [{ x = { shape = [1] } }]\ndims = { 'y.0' = 'auto' }", 6, "no row gives an input 'y'"),
        ("[inputs]\nrows = [{ x = { shape = [1] } }]\ndims = { 'x.1' = 'auto' }", 6, "has 1 dimensions"),
        ("[plan]\nrules = [{ match = 'type:', precision = 'fp32' }]", 5, "nothing after the colon"),
        ("[plan]\nrules = 3", 5, "a list"),
        ("[modle]\nsource = 'x'", 4, "did you mean 'model'"),
        ("[goal]\nmax_drop = 1979-05-27", 5, "a date or time"),
    ],
)
def test_each_mistake_is_named_where_it_is(lines, line, words):
    ((found_line, text),) = problems_of(MINIMAL + lines + "\n")
    assert found_line == line
    assert words in text


def test_a_missing_source_says_what_to_write():
    ((line, text),) = problems_of("format = 1\n[model]\nentry = 'f'\n")
    assert (line, "names no model" in text) == (2, True)


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
