"""The command line: words to requests, events to answers, problems to exit codes."""

import json

import pytest

from ace_studio.cli import follow, run_command
from ace_studio.cli.recipe_options import rows_of
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    FileInspected,
    FileReport,
    JobCancelled,
    JobFailed,
    JobFinished,
    LogLine,
    RunRequest,
    WorkerLost,
)
from ace_studio.records.results import Baseline, Latency, Result, ResultStatus, RunStatus, TargetRun


class FakeExecutor:
    """Answers every request with a script of events and keeps the request."""

    script: tuple = ()
    requests: list = []  # noqa: RUF012 - shared on purpose: the command makes the instance

    def run(self, request):
        FakeExecutor.requests.append(request)
        yield from FakeExecutor.script

    def close(self):
        pass


@pytest.fixture
def answer_with(monkeypatch):
    monkeypatch.setattr(follow, "WorkerExecutor", FakeExecutor)
    FakeExecutor.requests = []

    def script(*events):
        FakeExecutor.script = events

    return script


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text('format = 1\n[model]\nsource = "model.py"\nentry = "make"\n', encoding="utf-8")
    return path


LATENCY = Latency(p10=1.0, p50=2.0, p90=3.0, n=5)


def result(status=ResultStatus.OK, error=None):
    run = TargetRun(target="openvino", status=RunStatus.OK, precision="fp32", latency_ms=LATENCY, verified=True)
    return Result(
        status=status, fingerprint="f", environment={}, baseline=Baseline(latency_ms=LATENCY), runs=(run,), chosen=0,
        error=error,
    )  # fmt: skip


def test_run_prints_one_json_document_and_nothing_else_on_stdout(answer_with, recipe, tmp_path, capsys):
    answer_with(LogLine(text="printed by the model"), JobFinished(result=result()))
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["chosen"] == 0
    assert "printed by the model" in err


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


def test_a_problem_is_said_on_stderr_and_is_the_error_of_the_json(answer_with, recipe, tmp_path, capsys):
    problem = Problem(code=ErrorCode.USER_CODE, what="forward raised", why="w", remedy="r", where="model.py:3")
    answer_with(JobFailed(problems=(problem,)))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["where"] == "model.py:3"
    assert "why: w" in err
    assert "remedy: r" in err
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "failed"


def test_a_broken_recipe_is_a_usage_error_that_names_every_line(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text('format = 1\n[model]\nsorce = "m.py"\n[plan]\ndefault = "int9"\n', encoding="utf-8")
    assert run_command(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert "bad.toml:3" in err
    assert "bad.toml:5" in err
    assert "Traceback" not in err


def test_a_missing_option_and_an_unknown_command_are_usage_errors(capsys):
    assert run_command(["run", "recipe.toml"]) == 2
    assert run_command(["fly"]) == 2
    assert "--out" in capsys.readouterr().err


def test_inspect_shows_the_report(answer_with, tmp_path, capsys):
    file = FileReport(path="m.py", kind="python", label="Python source", sha256="ab", size_bytes=3, trust="code")
    answer_with(FileInspected(report=file))
    assert run_command(["inspect", str(tmp_path / "m.py")]) == 0
    assert "Python source" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["timm:resnet18", "torchvision:vgg11"])
def test_a_model_of_a_package_is_asked_for_by_its_name(answer_with, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="no"),)))
    run_command(["trace", name, "--input", "x=1x3x8x8"])
    (request,) = FakeExecutor.requests
    assert request.recipe.model.source == name


def test_inputs_on_the_command_line_become_rows():
    rows = rows_of(["x=1x3x8x8", "x=2x3x8x8", "ids=1x16:int64"])
    assert [row["x"].shape for row in rows] == [(1, 3, 8, 8), (2, 3, 8, 8)]
    assert [row["ids"].dtype for row in rows] == ["int64", "int64"]


@pytest.mark.parametrize("word", ["x", "=1x2", "x=1xa", "x=1x-2"])
def test_a_malformed_input_is_a_usage_error(answer_with, recipe, word, capsys):
    assert run_command(["trace", str(recipe), "--input", word]) == 2
    assert "is not an input" in capsys.readouterr().err


def test_report_on_a_folder_without_a_result_says_what_to_name(tmp_path, capsys):
    assert run_command(["report", str(tmp_path)]) == 2
    assert "remedy" in capsys.readouterr().err


def test_report_on_a_failed_run_says_again_why_it_failed(answer_with, recipe, tmp_path, capsys):
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_CAPTURED, what="it branches", remedy="use where"),)))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out")])
    capsys.readouterr()
    assert run_command(["report", str(tmp_path / "out")]) == 3
    assert "it branches" in capsys.readouterr().err


def test_a_finished_run_is_remembered_and_listed(answer_with, recipe, tmp_path, capsys):
    answer_with(JobFinished(result=result()))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"])
    capsys.readouterr()
    assert run_command(["history", "--json"]) == 0
    newest = json.loads(capsys.readouterr().out)[0]
    assert (newest["target"], newest["latency_ms"]) == ("openvino", 2.0)
    assert newest["output"] == str(tmp_path / "out")


def test_a_wrong_word_is_answered_in_json_too(capsys):
    assert run_command(["frobnicate", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"


def test_an_output_folder_that_cannot_be_is_refused_before_the_job_begins(tmp_path, capsys, answer_with):
    answer_with()
    (tmp_path / "recipe.toml").write_text('format = 1\n[model]\nsource = "m.py"\n', encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    words = ["run", str(tmp_path / "recipe.toml"), "--out", str(tmp_path / "file" / "below"), "--json"]
    assert run_command(words) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"
    assert FakeExecutor.requests == []
