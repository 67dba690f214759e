from pathlib import Path

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Goal, ModelChoice
from ace_studio.records.results import Baseline
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session.document import Document, EngineState, JobKind, Part
from ace_studio.session.kept.settings import Settings
from ace_studio.session.session import Session, StepTimes
from tests.session.fake_engine_link import (
    CAPTURE,
    READY,
    RUNG,
    FakeEngineLink,
    Watcher,
    captured,
    inspected,
    result,
    target_run,
)


def test_opening_a_model_asks_what_it_is_and_fills_in_what_is_plain(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    session.apply(READY)
    session.files.open_path(model)
    assert engine.sent == [messages.InspectRequest(job=engine.job, path=str(model))]
    session.apply(inspected(engine.job, "helper", "make_model", "tracing_inputs", "calibration_inputs", "evaluate"))
    document = session.document
    assert document.recipe.model == ModelChoice(source="model.py", entry="make_model")
    assert document.recipe.inputs.tracing == "tracing_inputs"
    assert document.recipe.calibration.inputs == "calibration_inputs"
    assert document.recipe.evaluate.function == "evaluate"
    assert document.folder == str(model.parent)
    assert not document.is_dirty and not document.can_undo
    assert document.needs_trust and not document.is_trusted
    assert document.recent_files == (str(model),)


def test_a_model_of_a_package_opens_by_its_name_with_the_inputs_that_it_proposes(
    session: Session, engine: FakeEngineLink
) -> None:
    session.apply(READY)
    session.files.open_path("timm:resnet18")
    assert session.document.problems == ()
    assert session.document.recipe.model.source == "timm:resnet18"
    assert session.document.recent_files == ("timm:resnet18",)
    rows = tuple({"x": TensorSpec(shape=(batch, 3, 224, 224))} for batch in (1, 2))
    report = messages.FileReport(
        path="timm:resnet18", kind="timm", label="", sha256="", size_bytes=0, trust="data", inputs=rows
    )
    session.apply(messages.FileInspected(job=engine.job, report=report))
    assert session.document.recipe.inputs.rows == rows
    assert not session.document.is_dirty and not session.document.needs_trust


def test_an_entry_is_left_open_if_several_are_plausible(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.apply(inspected(engine.job, "first", "second"))
    assert session.document.recipe.model.entry == ""


def test_a_trace_is_followed_to_its_end_and_findings_are_never_undone(opened: Session, engine: FakeEngineLink) -> None:
    watcher = Watcher(opened)
    opened.choices.set_dim("x.0", DimChoice.DYNAMIC)
    opened.jobs.trace()
    request = engine.sent[-1]
    assert isinstance(request, messages.TraceRequest) and request.recipe == opened.document.recipe
    job = engine.job
    opened.apply(messages.Progress(job=job, phase=messages.Phase.CAPTURE, detail="export", fraction=0.5))
    activity = opened.document.activity
    assert (activity.state, activity.verb, activity.phase) == (EngineState.BUSY, JobKind.TRACE, messages.Phase.CAPTURE)
    assert (activity.detail, activity.fraction) == ("export", 0.5)
    opened.apply(messages.AttemptEnded(job=job, outcome=RUNG))
    opened.apply(captured(job, "a", "b"))
    opened.apply(messages.JobFinished(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert opened.document.capture is CAPTURE and opened.document.rungs == (RUNG,)
    assert not opened.document.is_stale
    assert {Part.RECIPE, Part.GRAPH, Part.ACTIVITY} <= watcher.taken()
    opened.choices.undo()
    assert opened.document.graph is not None
    assert opened.document.is_stale and opened.document.is_capture_stale
    opened.choices.redo()
    assert not opened.document.is_stale


def test_a_run_fills_the_table_as_it_goes_and_ends_in_the_history(
    opened: Session, engine: FakeEngineLink, tmp_path: Path
) -> None:
    opened.jobs.run(tmp_path / "out")
    job = engine.job
    opened.apply(messages.BaselineMeasured(job=job, fingerprint="f1", baseline=Baseline(size_bytes=5)))
    opened.apply(messages.TargetAtWork(job=job, target="openvino", index=2))
    assert opened.document.activity.run == 2
    for index, target in ((2, "openvino"), (0, "eager"), (2, "openvino again"), (0, "inductor")):
        opened.apply(messages.TargetFinished(job=job, fingerprint="f1", index=index, run=target_run(target)))
    assert [run.target for run in opened.document.runs] == ["inductor", "openvino again"]
    assert opened.history.store.list() == ()
    opened.apply(messages.JobFinished(job=job, result=result(target_run("openvino")), output=str(tmp_path / "out")))
    assert [run.target for run in opened.document.runs] == ["openvino"]
    assert opened.document.selection.run == 0
    (past,) = opened.history.store.list()
    assert (past.title, past.target, past.output) == ("model.py", "openvino", str(tmp_path / "out"))
    assert not opened.document.is_stale
    opened.choices.set_goal(Goal(max_drop=0.5))
    assert opened.document.is_stale


def test_a_late_answer_of_an_old_job_is_filed_but_not_shown(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    old = engine.job
    opened.jobs.cancel()
    opened.apply(messages.JobCancelled(job=old))
    late: list[messages.AnyEvent] = [
        captured(old, "a"),
        messages.TargetFinished(job=old, fingerprint="f1", index=0, run=target_run("eager")),
        messages.Progress(job=old, phase=messages.Phase.MEASURE),
        messages.JobFinished(job=old, result=result(target_run("eager")), output=""),
    ]
    for event in late:
        opened.apply(event)
    assert opened.document.graph is None and opened.document.runs == ()
    assert opened.document.activity.state is EngineState.IDLE
    assert len(opened.history.store.list()) == 1


def test_a_failed_job_leaves_its_problems_and_the_engine_idle(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    problem = Problem(code=ErrorCode.USER_CODE, what="forward() raised")
    opened.apply(messages.JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.problems == (problem,)
    assert opened.document.activity.state is EngineState.IDLE


def test_log_lines_are_kept_up_to_the_limit(session: Session) -> None:
    session.set_setting("log_lines", 100)
    for number in range(150):
        session.apply(messages.LogLine(text=str(number)))
    assert session.document.log == tuple(str(number) for number in range(50, 150))


def followed(
    times, clock, job, *, steps=((messages.Phase.LOAD, 1.0), (messages.Phase.CAPTURE, 5.0), (messages.Phase.LOAD, 2.0))
):
    document = Document(folder="/here")
    for phase, seconds in steps:
        document = replace(document, steps=times.heard(messages.Progress(job=job, phase=phase), document))
        clock[0] += seconds
    return document


def test_a_phase_that_comes_twice_is_one_step_and_the_next_job_knows_what_to_expect(tmp_path):
    clock = [0.0]
    times = StepTimes(Settings(tmp_path / "s.json"), lambda: clock[0])
    document = followed(times, clock, "run-1")
    assert [step.usual_s for step in document.steps] == [None, None]
    ended = times.ended(document, is_finished=True)
    assert [(step.phase, step.seconds, step.since_s) for step in ended] == [
        (messages.Phase.LOAD, 3.0, None),
        (messages.Phase.CAPTURE, 5.0, None),
    ]
    later = followed(times, clock, "run-2", steps=((messages.Phase.LOAD, 1.0),))
    assert [(step.phase, step.seconds, step.usual_s) for step in later.steps] == [
        (messages.Phase.LOAD, 0.0, 3.0),
        (messages.Phase.CAPTURE, None, 5.0),
    ]


def test_progress_within_a_phase_changes_nothing_and_a_cancelled_job_teaches_nothing(tmp_path):
    clock = [0.0]
    times = StepTimes(Settings(tmp_path / "s.json"), lambda: clock[0])
    document = followed(times, clock, "run-1")
    assert (
        times.heard(messages.Progress(job="run-1", phase=messages.Phase.LOAD, fraction=0.5), document) is document.steps
    )
    times.ended(document, is_finished=False)
    assert [step.usual_s for step in followed(times, clock, "run-2").steps] == [None, None]
