"""Sizes of calibration and evaluation that the examples do not cover stop a run, or are taken."""

from collections import Counter

import pytest
import torch

import ace_studio
from ace_studio.engine.pipeline import load_requested
from ace_studio.engine.pipeline.ready import make_ready, representative
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import RunRequest, SizesWanted
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import (
    CalibrationChoice,
    EvaluateChoice,
    Goal,
    InputsChoice,
    ModelChoice,
    Recipe,
    ShapesFrom,
)
from ace_studio.records.tensors import TensorSpec

MODEL = """
import torch

class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 4)
    def forward(self, ids, mask=None):
        words = self.table(ids)
        return (words if mask is None else words * mask.unsqueeze(-1)).mean(1)

def make():
    return Words()

def tracing():
    return [{"ids": torch.arange(8).reshape(1, 8), "mask": torch.ones(1, 8, dtype=torch.int64)}]

def texts():  # as a processor of Hugging Face gives them: a batch by name, padded to its longest text
    for batch, length in [(4, 5), (4, 9), (4, 9), (4, 31), (3, 7)]:
        ids = torch.randint(0, 50, (batch, length))
        yield {"ids": ids, "mask": torch.ones_like(ids)}

def fixed_with_tail():
    return [torch.ones(batch, 8, dtype=torch.int64) for batch in (8, 8, 3)]

def pairs():
    return [(one, torch.zeros(len(one["ids"]), dtype=torch.int64)) for one in texts()]

def evaluate(predict):
    return float(len(predict(torch.ones(7, 8, dtype=torch.int64))))

def broken(predict):
    raise ValueError("no labels")

def never():
    raise AssertionError("nothing needs ranges")
"""
STATIC = Plan(default=Precision.INT8_STATIC)
TRACED = InputsChoice(tracing="tracing")
ONE_ROW = InputsChoice(rows=({"ids": TensorSpec(shape=(1, 8), dtype="int64", values="random 0..49")},))
DATA = InputsChoice(tracing="tracing", shapes_from=ShapesFrom.DATA)


@pytest.fixture
def ready(tmp_path):
    """Make a model ready as a run does; give it, and what was reported."""
    (tmp_path / "words.py").write_text(MODEL)

    def make(inputs=TRACED, *, must_fit=True, **choices):
        recipe = Recipe(model=ModelChoice(source="words.py", entry="make"), inputs=inputs, **choices)
        request = RunRequest(job="j", recipe=recipe, folder=str(tmp_path), trust_all=True, output=str(tmp_path))
        events = []
        reporter = Reporter(events.append)
        loaded = load_requested(request, reporter)
        try:
            return make_ready(loaded, recipe, tmp_path, reporter=reporter, must_fit=must_fit), events
        except AceError as error:
            return error.problem, events

    return make


def _shapes(found):
    return [example.shapes() for example in found.examples]


def test_a_goal_for_the_metric_without_one_stops_a_run_before_it_traces(ready):
    goal = Goal(max_drop=0.01)
    problem, events = ready(goal=goal, calibration=CalibrationChoice(inputs="texts"), plan=STATIC)
    assert (problem.code, problem.where) == (ErrorCode.NO_DATA, "[goal] max_drop")
    assert not [event for event in events if isinstance(event, SizesWanted)]
    found, _ = ready(goal=goal, must_fit=False)
    assert found.examples


def test_a_run_stops_with_rows_that_a_recipe_can_be_given_and_then_goes_on(ready):
    problem, events = ready(calibration=CalibrationChoice(inputs="texts"), plan=STATIC)
    assert problem.code is ErrorCode.RECIPE
    assert "calibration" in problem.what
    assert "ids.1 is 5, 7, 9, 31 there and 8 in the examples" in problem.why
    (wanted,) = [event for event in events if isinstance(event, SizesWanted)]
    text = problem.remedy[problem.remedy.index("[[inputs.rows]]") :]
    rows = parse_recipe(f'format = 1\n[model]\nsource = "words.py"\n\n{text}', name="recipe.toml").inputs.rows
    assert rows == wanted.rows
    assert [row["ids"].shape for row in rows] == [(1, 8), (4, 5), (3, 7), (4, 9), (4, 31)]
    assert {row["mask"].values for row in rows} == {"constant 1"}
    assert {row["ids"].values for row in rows} == {"random 0..7"}
    found, _ = ready(InputsChoice(rows=rows), calibration=CalibrationChoice(inputs="texts"), plan=STATIC)
    assert len(found.examples) == 5


def test_rows_of_a_recipe_are_kept_and_only_the_missing_ones_are_named(ready):
    problem, events = ready(ONE_ROW, evaluate=EvaluateChoice(function="evaluate"))
    assert "evaluation" in problem.what and "calibration" not in problem.what
    (wanted,) = [event for event in events if isinstance(event, SizesWanted)]
    assert wanted.rows == ({"ids": TensorSpec(shape=(7, 8), dtype="int64", values="random 0..49")},)


@pytest.mark.parametrize(
    "choices",
    [
        {"calibration": CalibrationChoice(inputs="texts")},
        {"evaluate": EvaluateChoice(metric="top-1", data="pairs")},
    ],
    ids=["calibration", "labelled data"],
)
def test_sizes_are_taken_from_the_data_on_request_also_by_a_trace(ready, choices):
    found, events = ready(DATA, must_fit=False, **choices)
    sizes = [(1, 8), (4, 5), (3, 7), (4, 9), (4, 31)]
    assert _shapes(found) == [(size, size) for size in sizes]
    assert not [event for event in events if isinstance(event, SizesWanted)]
    assert found.examples[-1].kwargs["ids"].max() == 7  # the content of the example, repeated


def test_a_file_of_longer_samples_stops_the_run_before_it_is_refused(ready, tmp_path):
    ids = torch.zeros(6, 12, dtype=torch.int64)
    torch.save({"ids": ids, "mask": ids, "labels": ids[:, 0]}, tmp_path / "data.pt")
    choice = CalibrationChoice(inputs="data.pt")
    problem, _ = ready(calibration=choice, plan=STATIC)
    assert "ids.1 is 12 there and 8 in the examples" in problem.why
    problem, _ = ready(evaluate=EvaluateChoice(metric="top-1", data="data.pt"))
    assert "evaluation" in problem.what
    found, _ = ready(DATA, calibration=choice, plan=STATIC)
    assert _shapes(found)[-1] == ((1, 12), (1, 12))
    assert len(list(found.loaded.data.calibration())) == 6


def test_what_calibration_can_use_or_does_not_need_is_no_reason_to_stop(ready):
    for plan, function in [(STATIC, "fixed_with_tail"), (Plan(), "never")]:
        found, _ = ready(ONE_ROW, calibration=CalibrationChoice(inputs=function), plan=plan)
        assert _shapes(found) == [((1, 8),)]


def test_from_python_the_examples_to_add_are_named_and_the_metric_of_the_original_is_measured_once(tmp_path):
    model, sizes = torch.nn.Linear(3, 2), []

    def evaluate(predict):
        sizes.append(7)
        return float(len(predict(torch.ones(7, 3))))

    def compiled(**choices):
        return ace_studio.compile(model, tracing_inputs=[torch.ones(2, 3)], evaluate=evaluate, target="eager",
                                  rounds=1, profile=False, default="fp32", out=tmp_path, **choices)  # fmt: skip

    with pytest.raises(AceError) as stopped:
        compiled()
    words = stopped.value.problem.remedy
    assert 'shapes_from="data"' in words
    added = eval(words[words.index("\n") :].strip().splitlines()[-1].rstrip(","), {"torch": torch})  # noqa: S307
    assert added["input"].shape == (7, 3)
    sizes.clear()
    result = compiled(shapes_from="data")
    assert result.report.baseline.metric == 7
    assert len(sizes) == 2  # the original and the one run


def test_an_evaluation_that_fails_is_left_to_the_step_that_measures(ready):
    found, _ = ready(ONE_ROW, evaluate=EvaluateChoice(function="broken"))
    assert found.score is None and _shapes(found) == [((1, 8),)]


def test_few_calls_stand_for_many_and_hold_the_extremes_of_every_dimension():
    counts = Counter({((1, height, 100 - height),): 1 for height in range(10, 90)})
    counts[((1, 40, 60),)] = 9
    heights = {shape[0][1] for shape in representative(counts)}
    assert {10, 40, 89} <= heights and len(heights) <= 5
    assert representative(Counter()) == []


def test_the_choice_is_written_to_a_recipe_and_read_from_it():
    recipe = Recipe(model=ModelChoice(source="m.py"), inputs=DATA)
    assert 'shapes_from = "data"' in recipe_text(recipe)
    assert parse_recipe(recipe_text(recipe), name="r.toml") == recipe
