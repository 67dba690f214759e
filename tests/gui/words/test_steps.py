"""The steps from a file to an artifact: one is next, and a blocked one says why."""

# ruff: noqa: F811 - fixtures

from msgspec.structs import replace

from ace_studio.gui.words.steps import StepState, has_random_weights, steps_of, why_not
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import FileReport, JobFailed, JobFinished
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.session.document import Activity, Document, EngineState, JobKind
from tests.session.conftest import engine, model, opened, session  # noqa: F401
from tests.session.fake_engine_link import READY, result, target_run


def states(session):
    return {step.id: step.state for step in steps_of(session.document)}


def next_step(session):
    return [step.id for step in steps_of(session.document) if step.state is StepState.NEXT]


def test_there_are_no_steps_without_a_model(session):
    assert steps_of(session.document) == ()


def test_trust_comes_before_trace_and_run_and_run_before_export(opened):
    opened.trust.revoke_trust()
    assert next_step(opened) == ["trust"]
    blocked = {step.id: step.why for step in steps_of(opened.document) if step.state is StepState.BLOCKED}
    assert blocked == dict.fromkeys(("trace", "run"), "Trust comes first") | dict.fromkeys(
        ("compare", "export"), "Run first"
    )
    opened.trust.trust_file()
    assert next_step(opened) == ["run"]
    assert states(opened)["trace"] is StepState.OPEN


def test_a_run_of_the_past_has_no_steps_to_take(opened):
    assert steps_of(opened.document)
    assert steps_of(replace(opened.document, past=object())) == ()


def test_trust_waits_until_the_file_was_looked_at(session, model):
    session.files.open_path(model)
    trust = next(step for step in steps_of(session.document) if step.id == "trust")
    assert (trust.state, trust.why) == (StepState.BLOCKED, "Looking at the file")
    session.report(Problem(code=ErrorCode.USAGE, what="Something else"))
    assert steps_of(session.document)[0].why == "Looking at the file", "another problem says nothing of the file"


def test_a_run_without_an_artifact_offers_no_export(opened, engine, tmp_path):
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.run(tmp_path)
    opened.apply(JobFinished(job=engine.job, result=result(target_run("onnxruntime")), output=str(tmp_path)))
    assert next_step(opened) == []
    export = steps_of(opened.document)[-1]
    assert (export.state, export.why) == (StepState.BLOCKED, "Select a result that has an artifact")


def test_export_is_done_once_an_artifact_was_saved_and_open_again_after_another_run(opened, engine, tmp_path):
    out = tmp_path / "out"
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.run(out)
    out.mkdir()
    (out / "a.onnx").write_bytes(b"model")
    opened.apply(JobFinished(job=engine.job, result=result(target_run("onnxruntime", "a.onnx")), output=str(out)))
    assert next_step(opened) == ["export"]
    opened.files.export_artifact(0, tmp_path / "saved")
    assert opened.document.exported_to == str(tmp_path / "saved.onnx") and (tmp_path / "saved.onnx").is_file()
    assert states(opened)["export"] is StepState.DONE and next_step(opened) == []
    assert steps_of(opened.document)[-1].why == "Saved as saved.onnx"
    opened.plan.set_default_precision(Precision.FP16)
    assert next_step(opened) == ["run"] and states(opened)["export"] is StepState.OPEN


def test_nothing_is_next_while_the_engine_works(opened):
    opened.apply(READY)
    opened.trust.trust_file()
    opened.jobs.trace()
    assert next_step(opened) == []
    assert states(opened)["trace"] is StepState.WORKING


def test_the_plan_is_done_only_if_it_compresses(opened):
    assert states(opened)["plan"] is StepState.DONE
    opened.plan.set_default_precision(Precision.FP32)
    assert states(opened)["plan"] is StepState.OPEN


def test_the_next_step_says_where_the_precisions_come_from(opened):
    opened.plan.set_plan_from_goal(True)
    assert ": precisions from the goal" in next(step.why for step in steps_of(opened.document) if step.id == "run")


def test_a_class_without_weights_is_at_random_ones(opened):
    assert not has_random_weights(opened.document)


def test_comparing_is_done_once_both_sides_are_pinned(opened, engine, tmp_path):
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.run(tmp_path)
    opened.apply(JobFinished(job=engine.job, result=result(target_run("onnxruntime", "a.onnx")), output=str(tmp_path)))
    opened.comparing.pin_shown(0)
    assert states(opened)["compare"] is StepState.OPEN
    opened.comparing.pin_shown(1)
    assert states(opened)["compare"] is StepState.DONE


FILE = FileReport(path="model.py", kind="python", label="Python source", sha256="", size_bytes=1, trust="code")
OPENED = Document(recipe=Recipe(model=ModelChoice(source="model.py", entry="make")), file=FILE)


def test_an_open_model_that_is_trusted_can_start():
    assert why_not(OPENED) == ""


def test_nothing_starts_before_it_is_known_what_makes_the_model():
    weights = replace(FILE, kind="state-dict", trust="data")
    unknown = replace(OPENED, recipe=Recipe(model=ModelChoice(source="net.pth")), file=weights)
    assert why_not(unknown) == "Choose what makes the model"
    assert {step.id for step in steps_of(unknown) if step.why == why_not(unknown)} == {"open", "trace", "run"}


def test_after_a_run_that_compressed_nothing_the_plan_comes_next(opened, engine, tmp_path):
    opened.plan.set_default_precision(Precision.FP32)
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.run(tmp_path)
    opened.apply(JobFinished(job=engine.job, result=result(target_run("onnxruntime", "a.onnx")), output=str(tmp_path)))
    assert next_step(opened) == ["plan"]
    assert states(opened)["export"] is StepState.OPEN


def test_the_first_step_says_when_a_file_could_not_be_opened():
    looking = replace(OPENED, file=None)
    refused = replace(looking, problems=(Problem(code=ErrorCode.BAD_FILE, what="not a model"),))
    words = [steps_of(one)[0].why for one in (looking, refused)]
    assert words == ["Looking at the file", "It could not be opened"]


def test_a_folder_that_is_no_model_is_not_opened_though_a_trace_says_what_it_lacks():
    folder = replace(FILE, kind="folder", label="Folder", trust="inspect")
    steps = {step.id: step for step in steps_of(Document(recipe=Recipe(model=ModelChoice(source="net")), file=folder))}
    assert steps["open"].state is StepState.NEXT
    assert steps["open"].why == "This folder is no model: open one of its files"
    assert steps["trace"].state is StepState.OPEN


def test_after_a_capture_that_failed_the_trace_comes_next_and_not_a_run_of_the_same(opened, engine):
    opened.jobs.trace()
    refused = Problem(code=ErrorCode.NOT_CAPTURED, what="forward raised")
    opened.apply(JobFailed(job=engine.job, problems=(refused,)))
    (step,) = (step for step in steps_of(opened.document) if step.state is StepState.NEXT)
    assert (step.id, step.why) == ("trace", "Not captured: correct the cause, then trace again")


def test_without_a_model_the_tooltip_says_to_open_one():
    assert why_not(replace(OPENED, recipe=Recipe())) == "No model is open. Open a model file or a recipe first"


def test_trust_is_asked_for_before_anything_else():
    assert "Trust comes first" in why_not(replace(OPENED, needs_trust=True, recipe=Recipe()))


def test_a_job_that_runs_is_named():
    busy = replace(OPENED, activity=Activity(state=EngineState.BUSY, verb=JobKind.TRACE))
    assert why_not(busy) == "The engine is busy with a trace. Wait until it is done, or cancel it"
