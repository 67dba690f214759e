"""``fix``: what is asked of the engine, what is shown, and what is written only if it is asked for."""

import json
from pathlib import Path

import pytest

from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import CaptureOutcome, FixKind, FixReport, FixStatus
from ace_studio.records.messages import FixTried, JobFailed, JobFinished
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from tests.cli.fake_engine import FakeExecutor

SOURCE = "a = 1\nif a:\n    b = 2\n"
PATCH = "--- net.py\n+++ net.py\n@@ -1,3 +1,3 @@\n a = 1\n-if a:\n+if True:\n     b = 2\n"
CONTROL = CaptureControl(function="net:magic", treat_as=ControlKind.NONSTRICT_TRACE)
WHOLE, PARTS = CaptureOutcome(rung="export", ops=9), CaptureOutcome(rung="partial", breaks=2, ops=5)


@pytest.fixture
def answer_with_fixes(answer_with):
    """Answer every request with these fixes."""

    def script(*fixes: FixReport) -> None:
        answer_with(*(FixTried(job="fix", fix=fix) for fix in fixes), JobFinished(job="fix"))

    script()
    return script


@pytest.fixture
def recipe(tmp_path) -> Path:
    (tmp_path / "net.py").write_text(SOURCE)
    path = tmp_path / "recipe.toml"
    path.write_text('# mine\nformat = 1\n[model]\nsource = "net.py"  # here\n')
    return path


def fix(recipe: Path, status: FixStatus, **values) -> FixReport:
    given = {"kind": FixKind.WHERE, "title": "use torch.where", "file": str(recipe.parent / "net.py"), "line": 2}
    given |= {"before": PARTS, "after": WHOLE if status is FixStatus.GREEN else CaptureOutcome()} | values
    return FixReport(status=status, **given)


def control_fix(recipe: Path, status: FixStatus = FixStatus.GREEN) -> FixReport:
    return fix(recipe, status, kind=FixKind.NONSTRICT_TRACE, title="mark magic", control=CONTROL)


def test_every_place_is_asked_for_and_nothing_is_written_by_default(recipe, answer_with_fixes, capsys):
    wrong = Problem(code=ErrorCode.WRONG_CAPTURE, what="It differs", why="on example 1")
    answer_with_fixes(
        fix(recipe, FixStatus.WRONG, problem=wrong),
        control_fix(recipe),
        fix(recipe, FixStatus.GREEN, patch=PATCH),
    )
    before = {path.name: path.read_bytes() for path in recipe.parent.iterdir()}
    assert run_command(["fix", str(recipe), "--trust"]) == 0
    assert {path.name: path.read_bytes() for path in recipe.parent.iterdir()} == before
    (request,) = FakeExecutor.requests
    assert (request.file, request.line, request.trust_all) == ("", 0, True)
    shown = capsys.readouterr().out
    assert shown.index("mark magic") < shown.index("wrong")  # green ones first
    assert "partial, 2 breaks -> export" in shown and "+if True:" in shown and "It differs (on example 1)" in shown


def test_a_place_is_looked_for_here_and_beside_the_recipe(recipe, answer_with_fixes):
    run_command(["fix", str(recipe), "--at", "net.py:2"])
    assert (FakeExecutor.requests[0].file, FakeExecutor.requests[0].line) == (str(recipe.parent / "net.py"), 2)


@pytest.mark.parametrize(("at", "code"), [("net.py", 2), ("other.py:3", 2)])
def test_a_place_that_makes_no_sense_is_a_mistake_of_usage(recipe, answer_with_fixes, at, code):
    assert run_command(["fix", str(recipe), "--at", at]) == code
    assert FakeExecutor.requests == []


def test_green_controls_go_into_the_recipe_when_asked_for(recipe, answer_with_fixes, capsys):
    answer_with_fixes(control_fix(recipe, FixStatus.NO_EFFECT), fix(recipe, FixStatus.GREEN, patch=PATCH))
    assert run_command(["fix", str(recipe), "--apply-controls"]) == 0
    assert read_recipe(recipe).capture.controls == ()
    answer_with_fixes(control_fix(recipe))
    assert run_command(["fix", str(recipe), "--apply-controls"]) == 0
    assert read_recipe(recipe).capture.controls == (CONTROL,)
    assert recipe.read_text().startswith('# mine\nformat = 1\n[model]\nsource = "net.py"  # here\n')
    assert "In the recipe now: net:magic as nonstrict_trace" in capsys.readouterr().out


def test_a_model_without_a_recipe_has_no_place_for_controls(recipe, answer_with_fixes):
    assert run_command(["fix", str(recipe.parent / "net.py"), "--apply-controls"]) == 2
    assert FakeExecutor.requests == []


def test_the_patch_is_saved_and_the_source_is_written_only_when_asked_for(recipe, answer_with_fixes, tmp_path):
    answer_with_fixes(fix(recipe, FixStatus.GREEN, patch=PATCH))
    saved, source = tmp_path / "a.patch", recipe.parent / "net.py"
    assert run_command(["fix", str(recipe), "--save-patch", str(saved)]) == 0
    assert saved.read_text() == PATCH and source.read_text() == SOURCE
    assert run_command(["fix", str(recipe), "--write-source"]) == 0
    assert source.read_text() == SOURCE.replace("if a:", "if True:")
    assert (recipe.parent / "net.py.bak").read_text() == SOURCE
    assert run_command(["fix", str(recipe), "--write-source"]) == 2  # it does not fit any more
    assert source.read_text() == SOURCE.replace("if a:", "if True:")


def test_of_patches_that_do_not_all_fit_none_is_written(recipe, answer_with_fixes, tmp_path, capsys):
    (tmp_path / "other.py").write_text("c = 3\n")
    answer_with_fixes(
        fix(recipe, FixStatus.GREEN, patch=PATCH),
        fix(recipe, FixStatus.GREEN, patch=PATCH, file=str(tmp_path / "other.py")),
        control_fix(recipe),
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run_command(["fix", str(recipe), "--write-source", "--apply-controls"]) == 2
    assert "Nothing was written" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_no_green_fix_is_a_model_that_could_not_be_captured(recipe, answer_with_fixes, capsys):
    answer_with_fixes(control_fix(recipe, FixStatus.FAILED))
    assert run_command(["fix", str(recipe), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["status"]) == (1, "no-fix")
    assert document["fixes"][0]["control"] == {"function": "net:magic", "as": "nonstrict_trace"}


def test_nothing_to_fix_is_done(recipe, answer_with_fixes, capsys):
    assert run_command(["fix", str(recipe)]) == 0
    assert "Nothing was tried" in capsys.readouterr().out


def test_problems_of_the_job_end_the_command_as_everywhere(recipe, answer_with):
    answer_with(JobFailed(job="fix", problems=(Problem(code=ErrorCode.UNTRUSTED, what="Not trusted"),)))
    assert run_command(["fix", str(recipe)]) == 5
