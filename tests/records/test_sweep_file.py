import pytest

from ace_studio.records import sweep_file
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.file import parse_toml
from ace_studio.records.recipes.recipe import Objective
from ace_studio.records.sweeps import Axis, Sweep

RECIPE = """format = 1
[model]
source = "model.py"
[[inputs.rows]]
x = { shape = [1, 4], dtype = "int64", values = "random 0..9" }
[goal]
min_sqnr_db = 30.0
optimize = "size"
[plan]
default = "bf16"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.toml").write_text(RECIPE)
    (tmp_path / "b.toml").write_text(RECIPE)
    return tmp_path


def jobs_of(folder, **document):
    sweep = sweep_file.checked_sweep({"format": 1, "recipes": ["a.toml"], **document}, name="s.toml")
    return sweep_file.sweep_jobs(sweep, folder, name="s.toml")


def test_every_recipe_has_every_combination_in_the_order_of_the_file(folder):
    jobs = jobs_of(folder, recipes=["a.toml", "b.toml"], axes={"threads": [1, 2], "target": ["eager", "openvino"]})
    assert [(job.recipe_path, *job.axes.values()) for job in jobs] == [
        (recipe, threads, target)
        for recipe in ("a.toml", "b.toml")
        for threads in (1, 2)
        for target in ("eager", "openvino")
    ]
    assert [job.job for job in jobs] == list("12345678")


@pytest.mark.parametrize(
    ("axis", "value", "get", "expected"),
    [
        ("plan", "fp32", lambda r: (r.plan.default, r.plan.from_goal), ("fp32", False)),
        ("plan", "auto", lambda r: r.plan.from_goal, True),
        ("plan", {"default": "int8-static", "rest": "bf16"}, lambda r: r.plan.label, "int8-static + bf16"),
        ("goal", 0.02, lambda r: (r.goal.max_drop, r.goal.min_sqnr_db, r.goal.optimize), (0.02, None, Objective.SIZE)),
        ("goal", "none", lambda r: r.goal.has_bound, False),
        ("goal", {"max_size_mb": 3.0}, lambda r: (r.goal.max_size_mb, r.goal.min_sqnr_db), (3.0, None)),
        ("target", "eager", lambda r: r.targets.names, ("eager",)),
        ("target", ["eager", "openvino"], lambda r: r.targets.names, ("eager", "openvino")),
        ("threads", "all", lambda r: r.measure.threads, "all"),
        ("device", "cpu", lambda r: r.measure.device, "cpu"),
    ],
)
def test_a_value_of_an_axis_takes_its_place_in_the_recipe(folder, axis, value, get, expected):
    (job,) = jobs_of(folder, axes={axis: [value]})
    assert get(job.recipe) == expected
    assert job.axes == {axis: sweep_file.word_of(value)}


def test_a_shape_replaces_the_examples_and_keeps_the_type_and_values_of_the_recipe(folder):
    (job,) = jobs_of(folder, axes={"shape": ["x=8x4"]})
    (row,) = job.recipe.inputs.rows
    assert (row["x"].shape, row["x"].dtype, row["x"].values) == ((8, 4), "int64", "random 0..9")
    (job,) = jobs_of(folder, axes={"shape": ["x=8x4:int32:zeros"]})
    assert (job.recipe.inputs.rows[0]["x"].dtype, job.recipe.inputs.rows[0]["x"].values) == ("int32", "zeros")


def test_a_shape_takes_the_place_of_a_function_that_gives_examples(folder):
    (folder / "a.toml").write_text('format = 1\n[model]\nsource = "model.py"\n[inputs]\ntracing = "examples"\n')
    (job,) = jobs_of(folder, axes={"shape": [["x=8x4", "y=8x2"]]})
    assert job.recipe.inputs.tracing == ""
    assert {name: spec.shape for name, spec in job.recipe.inputs.rows[0].items()} == {"x": (8, 4), "y": (8, 2)}


def test_an_exclusion_leaves_out_the_jobs_that_have_all_of_its_values(folder):
    axes = {"threads": [1, 2], "target": ["eager", "openvino"]}
    jobs = jobs_of(folder, axes=axes, exclude=[{"threads": 2, "target": "eager"}, {"recipe": "a.toml", "threads": 1}])
    assert [job.axes for job in jobs] == [{"threads": 2, "target": "openvino"}]


def test_exclusions_on_one_line_come_back(folder):
    exclude = ({"plan": "fp32", "threads": 2}, {"plan": {"default": "int8-static", "rest": "bf16"}}, {"shape": "x=1x2"})
    text = sweep_file.exclusion_text(exclude)
    assert text.startswith("plan = fp32, threads = 2; plan = {")
    assert sweep_file.exclusions_of(text) == exclude
    assert sweep_file.exclusions_of(" ; ") == ()
    for wrong in ("fp32", "plan =", "plan = {"):
        with pytest.raises(AceError):
            sweep_file.exclusions_of(wrong)


def test_all_mistakes_are_told_with_their_lines(folder):
    (folder / "s.toml").write_text(
        'format = 1\nrecipes = ["a.toml"]\nfoo = 1\n[axes]\nspeed = [1]\nthreads = []\nplan = ["fp32", "fp32"]\n'
        '[[exclude]]\nplan = "fp16"\n[[exclude]]\ncolour = 1\n'
    )
    with pytest.raises(AceError) as caught:
        sweep_file.read_jobs([folder / "s.toml"])
    assert [(one.where, one.what) for one in caught.value.problems] == [
        ("s.toml:3", "A sweep has no 'foo'"),
        ("s.toml:5", "There is no axis 'speed'"),
        ("s.toml:6", "[axes] threads must be a list of values"),
        ("s.toml:7", "[axes] plan names a value twice"),
        ("s.toml:9", "'plan' is never fp16"),
        ("s.toml:11", "There is no axis 'colour'"),
    ]


def test_a_value_that_the_recipe_cannot_have_is_told_where_the_sweep_names_it(folder):
    (folder / "s.toml").write_text('format = 1\nrecipes = ["a.toml"]\n[axes]\nplan = ["fp32", "int9"]\n')
    with pytest.raises(AceError) as caught:
        sweep_file.read_jobs([folder / "s.toml"])
    (problem,) = caught.value.problems
    assert (problem.where, problem.what) == ("s.toml:4", "[plan] default: 'int9' is not a precision")
    assert "a.toml" in problem.why


def test_a_wrong_recipe_is_told_with_its_own_lines(folder):
    (folder / "b.toml").write_text(RECIPE.replace("bf16", "bf17"))
    with pytest.raises(AceError) as caught:
        jobs_of(folder, recipes=["a.toml", "b.toml"], axes={"threads": [1, 2]})
    assert [one.where for one in caught.value.problems] == ["b.toml:10"]


def test_too_many_jobs_and_none_are_told_before_anything_starts(folder):
    with pytest.raises(AceError, match="10,200 jobs"):
        jobs_of(folder, axes={"threads": list(range(1, 103)), "goal": [number / 1000 for number in range(100)]})
    with pytest.raises(AceError, match="Every job of the sweep is excluded"):
        jobs_of(folder, axes={"threads": [1]}, exclude=[{"threads": 1}])
    with pytest.raises(AceError, match="4,000,000 combinations"):
        jobs_of(folder, axes={"threads": list(range(1, 2001)), "goal": [number / 2000 for number in range(2000)]})


def test_recipes_alone_are_a_sweep_without_axes(folder):
    jobs = sweep_file.read_jobs([folder / "a.toml", folder / "b.toml"])
    assert [(job.recipe_path, job.axes) for job in jobs] == [(str(folder / name), {}) for name in ("a.toml", "b.toml")]
    (folder / "s.toml").write_text('format = 1\nrecipes = ["a.toml"]\n')
    with pytest.raises(AceError, match="cannot be mixed"):
        sweep_file.read_jobs([folder / "s.toml", folder / "a.toml"])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("fp32, int8-static", ("fp32", "int8-static")),
        ("1, 2, all,", (1, 2, "all")),
        ("0.01, none", (0.01, "none")),
        ('{ default = "int8-static", rest = "bf16" }, auto', ({"default": "int8-static", "rest": "bf16"}, "auto")),
        ('["onnxruntime", "openvino"], eager', (["onnxruntime", "openvino"], "eager")),
        ('x=1x3x8x8, ["a=1x2", "b=1x3"]', ("x=1x3x8x8", ["a=1x2", "b=1x3"])),
        ('"1", true, "a, b"', ("1", "true", "a, b")),
        ("", ()),
    ],
)
def test_a_line_of_values_is_read_and_written_again(text, values):
    assert sweep_file.axis_values(text) == values
    assert sweep_file.axis_values(sweep_file.axis_text(values)) == values


@pytest.mark.parametrize("text", ["[fp32", '"fp32', '{ default = "x"'])
def test_a_line_that_is_not_closed_is_an_error(text):
    with pytest.raises(AceError, match="not closed"):
        sweep_file.axis_values(text)


def test_a_sweep_is_written_as_it_is_read():
    sweep = Sweep(
        recipes=("a.toml",),
        axes={Axis.PLAN: ("fp32", {"default": "bf16"}), Axis.SHAPE: ("x=1x2", ["a=1", "b=2"])},
        exclude=({"plan": "fp32", "shape": "x=1x2"},),
        files=("data/*",),
    )
    text = sweep_file.sweep_text(sweep)
    assert sweep_file.checked_sweep(parse_toml(text, "s"), name="s", text=text) == sweep


@pytest.mark.parametrize("pattern", ["/etc/*", ""])
def test_a_pattern_of_files_is_relative_to_the_sweep(pattern):
    with pytest.raises(AceError, match="files must be a list of patterns"):
        sweep_file.checked_sweep({"format": 1, "recipes": ["a.toml"], "files": [pattern]}, name="s.toml")
