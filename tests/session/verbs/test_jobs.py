"""The verbs that ask the engine for work."""

import difflib
from pathlib import Path

import pytest

from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.fixes import FixStatus
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.values import OpValues
from ace_studio.session.document import EngineState, JobKind
from ace_studio.session.session import Session
from ace_studio.session.verbs.jobs import write_patched_copy
from tests.session.fake_engine_link import READY, FakeEngineLink, captured, fix_of, inspected, lost, result, target_run

NO_MODEL = Problem(code=ErrorCode.BAD_FILE, what="no model")


def sent(engine: FakeEngineLink, kind: type) -> list:
    return [one for one in engine.sent if isinstance(one, kind)]


def test_a_new_run_clears_the_runs_before_it_but_not_the_graph(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(captured(engine.job, "a"))
    opened.apply(messages.JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))
    opened.jobs.run()
    assert opened.document.runs == () and opened.document.result is None
    assert opened.document.graph is not None
    assert isinstance(engine.sent[-1], messages.RunRequest) and Path(engine.sent[-1].output).is_absolute()


def test_one_job_at_a_time(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    sent = len(engine.sent)
    opened.jobs.scan_sensitivity()
    assert len(engine.sent) == sent
    assert "busy" in opened.document.problems[0].what


def test_nothing_starts_without_a_model(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.trace()
    assert engine.sent == [] and session.document.problems[0].code is ErrorCode.USAGE


def test_the_environment_is_asked_for_and_kept(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.request_environment()
    assert isinstance(engine.sent[-1], messages.DoctorRequest)
    report = messages.EnvironmentReport(
        python="3.11", executable="p", platform="l", cpu="c", cores=2, memory_bytes=1, versions={}
    )
    session.apply(messages.EnvironmentFound(job=engine.job, report=report))
    assert session.document.environment is report


def test_fixes_are_asked_for_one_place_and_collected(partial, engine):
    partial.jobs.try_fixes("/models/net.py", 10)
    request = engine.sent[-1]
    assert isinstance(request, messages.FixRequest)
    assert (request.file, request.line) == ("/models/net.py", 10)
    assert partial.document.activity.verb is JobKind.FIX
    assert partial.document.activity.is_working
    partial.apply(messages.FixTried(job=engine.job, fix=fix_of("/models/net.py", 10, FixStatus.FAILED)))
    partial.apply(messages.FixTried(job=engine.job, fix=fix_of("/models/net.py", 10)))
    partial.apply(messages.FixTried(job=engine.job, fix=fix_of("/models/net.py", 20)))
    partial.apply(messages.JobFinished(job=engine.job))
    assert [(fix.line, fix.status) for fix in partial.document.fixes] == [(10, FixStatus.GREEN), (20, FixStatus.GREEN)]
    assert partial.document.activity.state is EngineState.IDLE
    partial.jobs.try_fixes("/models/net.py", 20)
    assert [fix.line for fix in partial.document.fixes] == [10]


def test_the_values_of_an_op_are_those_of_the_selected_run_and_no_step_of_a_job(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.run()
    opened.apply(captured(engine.job, "a"))
    opened.apply(messages.JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))
    opened.view.select_run(0)
    steps = opened.document.steps
    opened.jobs.show_values("a", example=1)
    request = engine.sent[-1]
    assert isinstance(request, messages.ValuesRequest) and (request.target, request.example) == ("eager", 1)
    values = OpValues(op_id="a", precision="fp32", example=1, examples=2, tensors=())
    opened.apply(messages.ValuesFound(job=engine.job, fingerprint=opened.document.fingerprint, values=values))
    assert opened.document.values is values and opened.document.steps == steps
    assert opened.document.activity.state is EngineState.IDLE


def test_values_of_another_graph_than_the_shown_one_are_not_shown(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a"))
    opened.apply(messages.JobFinished(job=engine.job))
    opened.jobs.show_values("a")
    values = OpValues(op_id="a", precision="fp32", example=0, examples=1, tensors=())
    opened.apply(messages.ValuesFound(job=engine.job, fingerprint="another", values=values))
    assert opened.document.values is None and "another graph" in opened.document.problems[-1].what


def finish(session: Session, engine: FakeEngineLink) -> None:
    session.apply(messages.JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))


def states(session: Session) -> list[str]:
    return [str(one.state) for one in session.document.queue]


def test_runs_wait_for_their_turn_with_the_choices_of_their_time(opened: Session, engine: FakeEngineLink) -> None:
    for precision in (Precision.FP32, Precision.FP16, Precision.BF16):
        opened.plan.set_default_precision(precision)
        opened.jobs.run()
    assert states(opened) == ["running", "waiting", "waiting"]
    finish(opened, engine)
    assert states(opened) == ["done", "running", "waiting"]
    assert engine.sent[-1].recipe.plan.default is Precision.FP16
    assert opened.document.recipe.plan.default is Precision.BF16
    finish(opened, engine)
    finish(opened, engine)
    assert states(opened) == ["done", "done", "done"]
    assert len(opened.history.store.list()) == 3
    opened.jobs.run()
    assert states(opened) == ["running"]


def test_a_cancelled_run_is_said_and_the_next_one_starts(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.jobs.run()
    opened.jobs.cancel()
    opened.apply(messages.JobCancelled(job=engine.job))
    assert states(opened) == ["cancelled", "running"]
    opened.apply(messages.JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.CRASH, what="x"),)))
    assert states(opened) == ["cancelled", "failed"]


def test_a_run_that_waits_for_a_trace_and_an_engine_that_dies_lose_nothing(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.trace()
    opened.jobs.run()
    opened.jobs.run()
    opened.apply(lost(job=engine.job))
    opened.apply(READY)
    assert isinstance(engine.sent[-1], messages.RunRequest)
    assert states(opened) == ["running", "waiting"]


def test_waiting_runs_are_moved_and_taken_out(opened: Session, engine: FakeEngineLink) -> None:
    for _ in range(3):
        opened.jobs.run()
    first, second, third = (one.id for one in opened.document.queue)
    opened.jobs.move_queued(third, -1)
    opened.jobs.move_queued(third, -1)  # the run that goes on keeps its place
    assert [one.id for one in opened.document.queue] == [first, third, second]
    opened.jobs.unqueue(third)
    opened.jobs.unqueue(first)
    assert [one.id for one in opened.document.queue] == [first, second]


def test_the_queue_goes_with_its_model(opened: Session, engine: FakeEngineLink, model: Path) -> None:
    opened.jobs.run()
    opened.jobs.run()
    sent = len([one for one in engine.sent if isinstance(one, messages.RunRequest)])
    opened.files.open_path(model)
    opened.apply(messages.JobCancelled(job=engine.job))
    assert opened.document.queue == ()
    assert len([one for one in engine.sent if isinstance(one, messages.RunRequest)]) == sent


OLD = "".join(f"line {number}\n" for number in range(40))


def patch_to(new):
    return "".join(difflib.unified_diff(OLD.splitlines(True), new.splitlines(True), "m.py", "m.py"))


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("line 20\n", "line 20, changed\nand one more\n"),
        OLD.replace("line 0\n", "").replace("line 39\n", "the end\n"),
        "import torch\n" + OLD,
    ],
)
def test_a_patch_gives_the_text_that_it_was_made_of(new, tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD, encoding="utf-8")
    assert write_patched_copy(file, patch_to(new)).read_text(encoding="utf-8") == new


def test_a_file_that_changed_since_is_not_patched(tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD.replace("line 20", "edited"), encoding="utf-8")
    with pytest.raises(AceError, match="not as it was"):
        write_patched_copy(file, patch_to(OLD.replace("line 20\n", "")))
    assert [path.name for path in tmp_path.iterdir()] == ["m.py"]


def test_the_copy_stands_beside_the_file_and_replaces_no_other(tmp_path):
    file = tmp_path / "m.py"
    file.write_text(OLD, encoding="utf-8")
    patch = patch_to(OLD.replace("line 20\n", ""))
    copies = [write_patched_copy(file, patch).name for _ in range(2)]
    assert copies == ["m_fixed.py", "m_fixed1.py"]
    assert file.read_text(encoding="utf-8") == OLD


def test_a_run_that_is_asked_for_while_the_file_is_looked_at_starts_once_it_may(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.jobs.run()
    assert session.document.wished is JobKind.RUN and not sent(engine, messages.RunRequest)
    session.apply(inspected(engine.job, "make_model", path=str(model)))
    assert session.document.wished and not sent(engine, messages.RunRequest), "its code is not trusted yet"
    session.trust.trust_file()
    (run,) = sent(engine, messages.RunRequest)
    assert run.recipe.model.entry == "make_model" and not session.document.wished


@pytest.mark.parametrize(
    "end",
    [
        lambda session, model, job: session.jobs.cancel(),
        lambda session, model, job: session.files.open_path(model),
        lambda session, model, job: session.apply(messages.JobFailed(job=job, problems=(NO_MODEL,))),
        lambda session, model, job: session.apply(lost()),
    ],
)
def test_a_wish_goes_with_a_cancel_another_model_and_a_file_that_cannot_be_opened(
    session: Session, engine: FakeEngineLink, model: Path, end
) -> None:
    session.apply(READY)
    session.files.open_path(model)
    session.jobs.trace()
    assert session.document.wished is JobKind.TRACE
    end(session, model, engine.job)
    assert not session.document.wished
    session.apply(inspected(engine.job, "make_model", trust="inspect", path=str(model)))
    assert not sent(engine, messages.TraceRequest)


def weights_of(code: Path, job: str) -> messages.FileInspected:
    report = messages.FileReport(
        path=str(code.with_name("w.pt")), kind="state-dict", label="Weights", sha256="bb", size_bytes=1, trust="data",
        code=(str(code),),
    )  # fmt: skip
    return messages.FileInspected(job=job, report=report)


def test_a_run_that_is_asked_for_with_weights_is_one_of_the_code_that_opens_for_them(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    session.apply(READY)
    weights = model.with_name("w.pt")
    weights.write_bytes(b"w")
    session.files.open_path(weights)
    session.jobs.run()
    session.apply(weights_of(model, engine.job))
    assert session.document.recipe.model.source == model.name
    assert session.document.wished is JobKind.RUN and not sent(engine, messages.RunRequest)
    session.apply(inspected(engine.job, "make_model", path=str(model)))
    session.trust.trust_file()
    (run,) = sent(engine, messages.RunRequest)
    assert (run.recipe.model.source, run.recipe.model.weights) == (model.name, "w.pt")


def test_a_job_that_was_refused_for_want_of_trust_is_wished_for_until_it_is_cancelled(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.run()
    problem = Problem(code=ErrorCode.UNTRUSTED, what="changed", details=f"sha256:{'f' * 64}")
    opened.apply(messages.JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.wished is JobKind.RUN and opened.document.needs_trust
    opened.jobs.cancel()
    opened.trust.trust_file()
    assert not opened.document.wished and len(sent(engine, messages.RunRequest)) == 1
