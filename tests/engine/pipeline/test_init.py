"""Made-up numbers are told wherever a result is told: in its JSON, in the report, on the command line."""

import pytest
from filelock import FileLock

from ace_studio.cli.app import Console
from ace_studio.cli.show_result import show_result
from ace_studio.engine import evaluate, pipeline
from ace_studio.engine.pipeline import in_turn
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.messages import Phase, Progress, RunRequest
from ace_studio.records.recipes import recipe as recipes
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import TargetRun, decode_result
from ace_studio.records.targets import TargetRow
from ace_studio.records.tensors import TensorSpec, ValueSource

MODEL = """
import torch
def make():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
def data():
    return [torch.ones(1, 4)]
"""
REFUSING = """class Refusing(torch.nn.Sequential):
    def forward(self, input):
        if input.abs().max() < 0.1:
            raise ValueError("too quiet")
        return super().forward(input)
def make"""


def _result(folder, plan, *, methods=(), data="", source=MODEL, has_rows=True, target="onnxruntime", goal=None):
    (folder / "model.py").write_text(source)
    row = {"input": TensorSpec(shape=(2, 4), values=ValueSource.RANDOM)}
    recipe = recipes.Recipe(
        model=recipes.ModelChoice(source="model.py", entry="make"),
        inputs=recipes.InputsChoice(rows=(row,) if has_rows else ()),
        calibration=recipes.CalibrationChoice(inputs=data),
        plan=plan,
        improve=recipes.ImproveChoice(methods=methods),
        goal=goal or recipes.Goal(),
        measure=recipes.MeasureChoice(rounds=1, profile=False),
        targets=recipes.TargetsChoice(names=(target,)),
    )
    request = RunRequest(job="j", recipe=recipe, folder=str(folder), trust_all=True, output=str(folder / "out"))
    pipeline.run(request, Reporter())
    return decode_result((folder / "out" / "result.json").read_bytes())


@pytest.mark.parametrize(
    ("plan", "methods", "has_rows"),
    [
        (Plan(default=Precision.INT8_STATIC), (), True),
        (Plan(), (recipes.ImproveMethod.EQUALIZE,), True),
        (Plan(default=Precision.INT8_STATIC), (), False),
    ],
    ids=["ranges", "improvements", "proposed inputs"],
)
def test_ranges_of_random_numbers_are_called_so_everywhere(tmp_path, capsys, plan, methods, has_rows):
    result = _result(tmp_path, plan, methods=methods, has_rows=has_rows)
    (warning,) = [one for one in result.warnings if one.code == "fake-calibration"]
    assert "made-up" in warning.what
    assert "made-up numbers" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    show_result(result, Console(as_json=False), tmp_path)
    said = capsys.readouterr()
    assert "made-up" in " ".join((said.out + said.err).split())


def test_a_model_with_batch_norms_gets_examples_that_resemble_its_data_and_it_is_said(tmp_path):
    norm = """torch.nn.BatchNorm1d(4)
    norm.running_mean += 9
    norm.running_var *= 16
"""
    source = MODEL.replace("    return torch.nn.Sequential(", f"    norm = {norm}    return torch.nn.Sequential(norm, ")
    result = _result(tmp_path, Plan(), methods=(recipes.ImproveMethod.EQUALIZE,), source=source, target="eager")
    (warning,) = [one for one in result.warnings if one.code == "fake-calibration"]
    assert "batch norms" in warning.what
    result = _result(tmp_path, Plan(default=Precision.INT8_STATIC), source=source)
    (warning,) = [one for one in result.warnings if one.code == "fake-calibration"]
    assert "batch norms" in warning.what and "the worst of other made-up inputs" in warning.what


@pytest.mark.parametrize(("data", "has_rows"), [("", True), ("", False), ("data", True)])
def test_without_data_a_goal_is_met_without_ranges_and_it_is_said_what_data_would_bring(
    tmp_path, monkeypatch, data, has_rows
):
    usual = lambda _row, precision, **_: 400.0 if str(precision) == "int8-static" else 1.0  # noqa: E731
    monkeypatch.setattr(TargetRow, "typical_speedup", usual)
    goal = recipes.Goal(min_sqnr_db=20.0)
    result = _result(tmp_path, Plan(from_goal=True), data=data, has_rows=has_rows, goal=goal)
    lows = {step.low for step in result.search} | {run.precision for run in result.runs}
    assert ("int8-static" in lows) is bool(data) and result.goal_met
    said = [one.what for one in result.warnings if one.code == "no-data"]
    assert len(said) == (not data) and "fake-calibration" not in {one.code for one in result.warnings}
    assert all("times as fast as now" in one for one in said)
    cards = [one for one in result.advice if one.kind == "calibration-data"]
    assert [one.change for one in cards] == [{"calibration": {"inputs": "calibration_inputs"}}] * len(said)
    assert "precision-int8-static" not in {one.kind for one in result.advice}


def test_a_run_that_was_planned_with_ranges_and_built_at_fp32_is_not_said_to_be_calibrated(tmp_path, monkeypatch):
    monkeypatch.setattr(TargetRun, "is_exact", True)
    assert "fake-calibration" not in {
        one.code for one in _result(tmp_path, Plan(default=Precision.INT8_STATIC)).warnings
    }


def test_a_plan_with_ranges_is_judged_by_the_worst_kind_of_other_made_up_inputs(tmp_path):
    result = _result(tmp_path, Plan(default=Precision.INT8_STATIC))
    (run,), (warning,) = result.runs, [one for one in result.warnings if one.code == "fake-calibration"]
    assert run.fidelity_db < 10  # of numbers a thousand times smaller nothing is left
    assert f"{run.fidelity_db:.1f} dB on numbers a thousand times smaller" in warning.what
    refused = MODEL.replace("    return torch.nn.Sequential(", "    return Refusing(").replace("def make", REFUSING, 1)
    (run,) = _result(tmp_path, Plan(default=Precision.INT8_STATIC), source=refused).runs
    assert run.fidelity_db > 10  # kinds that the model does not take are left out


@pytest.mark.parametrize(("count", "has_judges"), [(32, True), (4, False)])
def test_with_data_a_plan_with_ranges_is_judged_by_what_was_held_out(tmp_path, monkeypatch, count, has_judges):
    judged, original = [], evaluate.fidelity_of
    monkeypatch.setattr(evaluate, "fidelity_of", lambda *args: judged.append(len(args[0])) or original(*args))
    source = MODEL.replace("[torch.ones(1, 4)]", f"list(torch.randn({count}, 1, 4))")
    (run,) = _result(tmp_path, Plan(default=Precision.INT8_STATIC), data="data", source=source).runs
    assert (max(judged) > 1) is has_judges and (run.fidelity_db > 20 or not has_judges)


@pytest.mark.slow
def test_real_data_and_plans_that_need_none_are_not_called_so(tmp_path):
    for plan, data in ((Plan(default=Precision.INT8_STATIC), "data"), (Plan(default=Precision.BF16), "")):
        assert "fake-calibration" not in {one.code for one in _result(tmp_path, plan, data=data).warnings}


def is_free(path):
    lock = FileLock(path)
    try:
        with lock.acquire(timeout=0):
            return True
    except TimeoutError:
        return False


def test_the_lock_is_held_while_something_is_measured_and_no_longer(tmp_path):
    path, reporter = str(tmp_path / "lock"), Reporter()
    with in_turn(reporter, path):
        assert is_free(path)
        reporter.phase(Phase.MEASURE)
        assert not is_free(path)
        reporter.phase(Phase.MEASURE, "the next one")
        assert not is_free(path)
        reporter.phase(Phase.EXPORT)
        assert is_free(path)
        reporter.phase(Phase.MEASURE)
    assert is_free(path)


def test_a_job_says_that_it_waits_and_can_be_cancelled_meanwhile(tmp_path):
    path, seen = str(tmp_path / "lock"), []
    reporter = Reporter(seen.append, is_cancelled=lambda: len(seen) > 0)
    with FileLock(path), in_turn(reporter, path), pytest.raises(Cancelled):
        reporter.phase(Phase.MEASURE)
    (told,) = (one.detail for one in seen if isinstance(one, Progress))
    assert told == "waiting while another job measures on this machine"


def test_a_lock_that_cannot_be_opened_is_none(tmp_path):
    reporter = Reporter()
    with in_turn(reporter, str(tmp_path / "no" / "lock")):
        reporter.phase(Phase.MEASURE)


def test_without_a_lock_nothing_is_done():
    reporter = Reporter()
    with in_turn(reporter, ""):
        reporter.phase(Phase.MEASURE)
