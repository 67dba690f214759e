"""Catching inputs from the window: a script runs, and its calls become an undoable choice."""

from pathlib import Path

import pytest

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import CatchRequest, InputsCaught, JobFailed, ModuleCalls
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.document import JobKind
from tests.session.fake_engine_link import inspected


@pytest.fixture
def script(model: Path) -> Path:
    path = model.parent / "scripts" / "train.py"
    path.parent.mkdir()
    path.write_text("...\n")
    return path


def caught(job: str, folder: Path, **fields) -> InputsCaught:
    path = str(folder / "caught" / "train" / "inputs.json")
    modules = (ModuleCalls(path="", kind="Net", calls=3, inputs=("x float32 1x4",)),)
    return InputsCaught(job=job, path=path, module="Net", seen=3, kept=2, modules=modules, **fields)


def test_the_request_says_what_to_run_where_and_what_to_keep(opened, engine, script):
    opened.jobs.catch_inputs(script, "encoder", calls=3, arguments=("--steps", "5"))
    request = engine.sent[-1]
    assert isinstance(request, CatchRequest)
    assert (request.script, request.folder) == (str(script), str(script.parent))
    assert request.output == str(script.parent.parent / "caught" / "train")
    assert (request.module, request.calls, request.arguments) == ("encoder", 3, ("--steps", "5"))
    assert opened.document.activity.verb is JobKind.CATCH
    assert opened.document.activity.is_working


def test_calls_that_are_only_tensors_become_rows_relative_to_the_recipe_and_undo_takes_them_back(
    opened, engine, script
):
    opened.choices.set_tracing("rows")
    opened.jobs.catch_inputs(script)
    tensors = script.parent.parent / "caught" / "train" / "inputs.safetensors"
    rows = ({"x": TensorSpec(shape=(1, 4), values=f"{tensors}:0.x")},)
    opened.apply(caught(engine.job, script.parent.parent, rows=rows))
    inputs = opened.document.recipe.inputs
    assert inputs.rows[0]["x"].values == "caught/train/inputs.safetensors:0.x"
    assert (inputs.tracing, inputs.caught) == ("", "")
    assert opened.document.caught.kept == 2
    assert not opened.document.activity.is_working
    opened.choices.undo()
    assert opened.document.recipe.inputs.tracing == "rows"


def test_other_calls_are_named_as_they_lie_on_disk_and_a_failed_script_is_told(opened, engine, script):
    opened.jobs.catch_inputs(script)
    problem = Problem(code=ErrorCode.USER_CODE, what="disk gone", where="train.py:3")
    opened.apply(caught(engine.job, script.parent.parent, problem=problem))
    assert opened.document.recipe.inputs.caught == "caught/train/inputs.json"
    assert problem in opened.document.problems


def test_a_script_that_nobody_trusts_is_asked_about_and_then_run_with_the_same_words(opened, engine, model, script):
    opened.jobs.catch_inputs(script, "encoder", calls=3)
    refusal = Problem(code=ErrorCode.UNTRUSTED, what="no", where=str(script), details=f"sha256:{'b' * 64}")
    opened.apply(JobFailed(job=engine.job, problems=(refusal,)))
    assert opened.document.needs_trust
    opened.apply(inspected(engine.job, "make_model", path=str(model)))
    opened.trust.trust_file()
    request = engine.sent[-1]
    assert isinstance(request, CatchRequest)
    assert (request.module, request.calls) == ("encoder", 3)
    assert "b" * 64 in request.trusted_sha256
