"""``trace``: what the options ask of the engine."""

import pytest

from ace_studio.cli import console as console_module
from ace_studio.cli import follow, run_command
from ace_studio.cli.console import Console
from ace_studio.cli.show import captured_words
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed, Phase, Progress
from ace_studio.records.results import CaptureReport


@pytest.fixture
def requests(monkeypatch):
    kept = []

    class Executor:
        def run(self, request):
            kept.append(request)
            problem = Problem(code=ErrorCode.NOT_CAPTURED, what="no", why="no", remedy="no")
            yield JobFailed(job=request.job, problems=(problem,))

        def close(self):
            pass

    monkeypatch.setattr(follow, "WorkerExecutor", Executor)
    return kept


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


def test_a_log_says_at_most_twice_a_minute_that_a_trace_goes_on(monkeypatch, capsys):
    now_s = [0.0]
    monkeypatch.setattr(console_module.time, "monotonic", lambda: now_s[0])
    console = Console(as_json=False)
    for second in range(1, 101):
        now_s[0] = float(second)
        console.show_progress(Progress(phase=Phase.CAPTURE, detail=f"export: {second} s", is_pulse=True))
    console.show_progress(Progress(phase=Phase.VERIFY))
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines[:-1]] == ["30 s", "60 s", "90 s"]
    assert lines[-1] == str(Phase.VERIFY)


def test_a_capture_from_the_cache_says_so():
    report = CaptureReport(rung="export", ops=3, seconds=0.1, cached=True)
    assert "cache" in captured_words(report)
