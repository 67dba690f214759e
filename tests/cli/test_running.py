"""A run from the command line: its request, its exit code, its place in the history and its result."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.cli import follow, run_command
from ace_studio.cli.running import recipe_for
from ace_studio.engine.report import write_figures
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    EntryPoint,
    EntryRole,
    FileInspected,
    FileReport,
    InspectRequest,
    JobCancelled,
    JobFailed,
    JobFinished,
    ModelCaptured,
    RunRequest,
    WorkerLost,
)
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import CaptureReport, ResultStatus
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from tests.cli.fake_engine import FakeExecutor, result
from tests.gui.graph_tables import layered_table


def test_the_request_carries_the_recipe_its_folder_and_the_trust(answer_with, recipe, tmp_path):
    answer_with(JobFinished(result=result()))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--trust", "--json"])
    (request,) = FakeExecutor.requests
    assert isinstance(request, RunRequest)
    assert request.trust_all
    assert request.folder == str(tmp_path)
    assert request.recipe.model.entry == "make"


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((JobFailed(problems=(Problem(code=ErrorCode.RECIPE, what="x"),)),), 2),
        ((JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="x"),)),), 3),
        ((JobFailed(problems=(Problem(code=ErrorCode.UNTRUSTED, what="x"),)),), 5),
        ((WorkerLost(problem=Problem(code=ErrorCode.CRASH, what="x")),), 6),
        ((JobCancelled(),), 130),
        ((JobFinished(result=result(ResultStatus.GOAL_NOT_MET, Problem(code=ErrorCode.GOAL_NOT_MET, what="x"))),), 4),
        ((JobFinished(result=result(ResultStatus.FAILED, Problem(code=ErrorCode.UNSUPPORTED, what="x"))),), 6),
    ],
)
def test_each_ending_has_its_exit_code(answer_with, recipe, tmp_path, events, code):
    answer_with(*events)
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"]) == code


def test_a_run_says_before_it_starts_what_earlier_ones_took_and_at_its_end_where_the_time_went(
    answer_with, recipe, tmp_path, capsys
):
    took = replace(result(), seconds=41.0, phase_seconds={"lower": 30.0, "measure": 9.0})
    answer_with(JobFinished(result=took))
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "Runs of this model" not in shown.err
    assert "It took 41 s: building 30 s, measuring latency 9.0 s" in shown.out
    answer_with(JobFinished(result=took))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out")])
    assert "Runs of this model took 41 s so far" in capsys.readouterr().err
    other = recipe.parent / "other"
    other.mkdir()
    (other / "recipe.toml").write_text(recipe.read_text(encoding="utf-8"), encoding="utf-8")
    answer_with(JobFinished(result=took))
    run_command(["run", str(other / "recipe.toml"), "--out", str(tmp_path / "out")])
    told = capsys.readouterr().err  # the history may hold runs of other tests
    assert "Runs of other models took " in told
    assert "41 s here" in told or " to " in told


def test_report_on_a_folder_without_a_result_says_what_to_name(tmp_path, capsys):
    assert run_command(["report", str(tmp_path)]) == 2
    assert "remedy" in capsys.readouterr().err


def test_report_on_a_failed_run_says_again_why_it_failed(answer_with, recipe, tmp_path, capsys):
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="it branches", remedy="use where"),)))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out")])
    capsys.readouterr()
    assert run_command(["report", str(tmp_path / "out")]) == 3
    assert "it branches" in capsys.readouterr().err


@pytest.mark.parametrize("is_new", [True, False])
def test_figures_that_a_run_wrote_before_it_died_are_kept_and_those_of_an_earlier_run_are_not(
    recipe, tmp_path, capsys, monkeypatch, is_new
):
    out = tmp_path / "out"

    def dies():
        if is_new:
            write_figures(result(ResultStatus.FAILED), out)
        yield WorkerLost(problem=Problem(code=ErrorCode.CRASH, what="it was killed"))

    monkeypatch.setattr(follow, "WorkerExecutor", FakeExecutor)
    monkeypatch.setattr(FakeExecutor, "script", dies())
    out.mkdir()
    write_figures(result(), out)
    assert run_command(["run", str(recipe), "--out", str(out)]) == 6
    assert ("ace-studio report" in capsys.readouterr().err) == is_new
    assert run_command(["report", str(out)]) == (0 if is_new else 6)
    shown = capsys.readouterr()
    assert ("openvino" in shown.out) == is_new
    assert "it was killed" in shown.err


@pytest.mark.parametrize("code", [ErrorCode.RECIPE, ErrorCode.UNTRUSTED])
def test_a_run_that_was_refused_leaves_the_result_of_an_earlier_one(answer_with, recipe, tmp_path, capsys, code):
    out = tmp_path / "out"
    out.mkdir()
    write_figures(result(), out)
    answer_with(JobFailed(problems=(Problem(code=code, what="x"),)))
    assert run_command(["run", str(recipe), "--out", str(out)]) in {2, 5}
    capsys.readouterr()
    assert run_command(["report", str(out)]) == 0
    assert "openvino" in capsys.readouterr().out


def test_an_engine_that_says_nothing_is_a_failed_job(answer_with, recipe, tmp_path, capsys):
    answer_with()
    for words in (["run", "--out", str(tmp_path / "out")], ["trace"], ["inspect"]):
        assert run_command([words[0], str(recipe), *words[1:]]) == 6
        assert "gave no answer" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "source"), [(".", "below"), ("..", "model"), ("../below", "below")])
def test_a_folder_is_named_by_its_place(tmp_path, monkeypatch, given, source):
    (tmp_path / "model" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "model" / "below")
    recipe, folder = recipe_for(Path(given))
    assert recipe.model.source == source and (folder / source).samefile(given)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (JobCancelled(), "cancelled"),
        (WorkerLost(problem=Problem(code=ErrorCode.CRASH, what="x")), "crashed"),
        (JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="x"),)), "failed"),
        (JobFailed(problems=(Problem(code=ErrorCode.UNTRUSTED, what="x"),)), None),
    ],
)
def test_a_run_without_a_result_is_remembered_as_what_it_is(answer_with, recipe, tmp_path, capsys, event, status):
    answer_with(event)
    run_command(["run", str(recipe), "--out", str(tmp_path / "out")])
    capsys.readouterr()
    run_command(["history", "--json"])
    listed = [one for one in json.loads(capsys.readouterr().out) if one["output"] == str(tmp_path / "out")]
    assert [one["status"] for one in listed] == ([status] if status else [])
    assert list(UserFolders.of_user().history.with_suffix(".started").iterdir()) == []
    run_command(["history"])
    shown = [line for line in capsys.readouterr().out.splitlines() if str(tmp_path / "out") in line]
    assert [status in line for line in shown] == [True] * len(listed)


def test_a_finished_run_is_remembered_and_listed(answer_with, recipe, tmp_path, capsys):
    answer_with(JobFinished(result=result()))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"])
    capsys.readouterr()
    assert run_command(["history", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)[0]
    assert (newest["target"], newest["latency_ms"]) == ("openvino", 2.0)
    assert newest["output"] == str(tmp_path / "out")


def test_a_finished_run_keeps_its_graph_for_the_window(answer_with, recipe, tmp_path):
    graph, capture = layered_table(2), CaptureReport(rung="export", ops=2, seconds=1.0)
    found = result()
    captured = ModelCaptured(fingerprint=found.fingerprint, capture=capture, graph=graph, sources={"m.py": "x = 1"})
    answer_with(captured, JobFinished(result=found))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"])
    kept = KeptGraphs(UserFolders.of_user().graphs).find(found.fingerprint)
    assert kept == KeptGraph(graph, {"m.py": "x = 1"})


def test_an_output_folder_that_cannot_be_is_refused_before_the_job_begins(tmp_path, capsys, answer_with):
    answer_with()
    (tmp_path / "recipe.toml").write_text('format = 1\n[model]\nsource = "m.py"\n', encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    words = ["run", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "file" / "below"), "--json"]
    assert run_command(words) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"
    assert FakeExecutor.requests == []


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:vgg11"])
def test_a_model_of_a_package_is_asked_for_by_its_name(answer_with, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="no"),)))
    run_command(["trace", name, "--input", "x=1x3x8x8"])
    (request,) = FakeExecutor.requests
    assert request.recipe.model.source == name


@pytest.mark.parametrize("word", ["x", "=1x2", "x=1xa", "x=1x-2", "x=1:int64:random 5"])
def test_a_malformed_input_is_a_usage_error(answer_with, recipe, word, capsys):
    assert run_command(["trace", str(recipe), "--input", word]) == 2
    assert "is not an input" in capsys.readouterr().err


@pytest.fixture
def requests(answer_with):
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="no", why="no", remedy="no"),)))
    return FakeExecutor.requests


@pytest.mark.parametrize("options", [[], ["--compare-rungs"]])
def test_all_rungs_are_compared_only_when_asked_for(tmp_path, requests, options):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('format = 1\n[model]\nsource = "model.py"\nentry = "make"\n', encoding="utf-8")
    assert run_command(["trace", str(recipe), *options]) == 3
    assert requests[0].recipe.capture.compare_rungs is bool(options)


@pytest.mark.parametrize(("options", "batch_only", "cache"), [([], True, True), (["--no-cache"], True, False)])
def test_an_option_says_more_than_the_recipe_and_one_that_is_absent_changes_nothing(
    tmp_path, requests, options, batch_only, cache
):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'format = 1\n[model]\nsource = "model.py"\nentry = "make"\n[capture]\nbatch_only = true\n', encoding="utf-8"
    )
    assert run_command(["trace", str(recipe), *options]) == 3
    assert (requests[0].recipe.capture.batch_only, requests[0].recipe.capture.cache) == (batch_only, cache)


def test_batch_only_can_be_asked_for_on_the_command_line(tmp_path, requests):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('format = 1\n[model]\nsource = "model.py"\n', encoding="utf-8")
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--batch-only"]) == 3
    assert requests[0].recipe.capture.batch_only


MODEL_ENTRIES = (
    EntryPoint(name="make_net", kind="function", signature="()", line=1, role=EntryRole.MODEL),
    EntryPoint(name="tracing_inputs", kind="function", signature="()", line=5, role=EntryRole.TRACING),
    EntryPoint(name="evaluate", kind="function", signature="()", line=9, role=EntryRole.EVALUATE),
)


@pytest.fixture
def net(answer_with, tmp_path):
    """A model file with functions and weights, as the engine reports it."""
    path = tmp_path / "net.py"
    path.write_text("")
    report = FileReport(
        path=str(path), kind="python", label="Python source", sha256="ab", size_bytes=3, trust="code",
        entries=MODEL_ENTRIES, weights=(str(tmp_path / "net.pth"),),
    )  # fmt: skip
    refused = JobFailed(problems=(Problem(code=ErrorCode.UNTRUSTED, what="x"),))
    FakeExecutor.script = defaultdict(lambda: (refused,)) | {
        InspectRequest: (FileInspected(report=report),),
        RunRequest: (JobFinished(result=result()),),
    }
    return path


def test_a_model_is_run_with_what_its_file_has_and_the_first_plan(net, tmp_path, capsys):
    assert run_command(["run", str(net), "--out", str(tmp_path / "out")]) == 0
    inspected, request = FakeExecutor.requests
    assert inspected.path == str(net)
    recipe = request.recipe
    assert (recipe.model.entry, recipe.model.weights) == ("make_net", "net.pth")
    assert (recipe.inputs.tracing, recipe.evaluate.function) == ("tracing_inputs", "evaluate")
    assert (recipe.plan.default, recipe.goal.max_drop) == (Precision.INT8_STATIC, 0.01)
    told = "Taken from net.py: entry make_net, weights net.pth, example inputs tracing_inputs, evaluation evaluate"
    assert told in capsys.readouterr().err


def test_weights_are_run_with_the_functions_of_the_file_that_makes_their_model(net, tmp_path, monkeypatch, capsys):
    weights = tmp_path / "weights" / "net.pth"
    weights.parent.mkdir()
    weights.write_text("")
    monkeypatch.chdir(tmp_path)
    alone = FileReport(path=str(weights), kind="state-dict", label="weights", sha256="ab", size_bytes=3, trust="data")
    of_code = FakeExecutor.script[InspectRequest]
    FakeExecutor.script[InspectRequest] = [(FileInspected(report=alone),), of_code]
    assert run_command(["run", "weights/net.pth", "--entry", "net.py:make_net", "--out", str(tmp_path / "out")]) == 0
    _, inspected, request = FakeExecutor.requests
    assert Path(inspected.path).resolve() == net
    assert request.recipe.model.entry == "../net.py:make_net"
    assert request.recipe.inputs.tracing == "../net.py:tracing_inputs"
    assert request.recipe.evaluate.function == "../net.py:evaluate"
    assert "Taken from net.pth and net.py: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["trace"], ["plan"], ["sensitivity"], ["fix"], ["values", "--op", "relu"]])
def test_every_command_takes_the_examples_of_a_model_file_unless_inputs_are_given(net, words):
    command, *rest = words
    run_command([command, str(net), *rest])
    run_command([command, str(net), *rest, "--input", "x=1x4", "--entry", "other"])
    own, given = (request.recipe for request in FakeExecutor.requests[1::2])
    assert (own.model.entry, own.inputs.tracing, own.inputs.rows) == ("make_net", "tracing_inputs", ())
    assert (given.model.entry, given.inputs.tracing, len(given.inputs.rows)) == ("other", "", 1)
    assert own.plan.default is Precision.FP32
