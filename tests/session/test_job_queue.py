"""One request at a time, and an engine process that is lost or cancelled."""

from pathlib import Path

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.session.document import EngineState, JobKind
from ace_studio.session.session import Session
from tests.session.fake_engine_link import READY, FakeEngineLink, captured, lost


def test_a_request_waits_until_the_engine_is_ready(session: Session, engine: FakeEngineLink, model: Path) -> None:
    session.files.open_path(model)
    assert engine.sent == []
    assert session.document.activity.state is EngineState.STARTING
    assert session.document.activity.verb is JobKind.INSPECT
    session.apply(READY)
    assert len(engine.sent) == 1
    assert session.document.activity.state is EngineState.BUSY


def test_requests_that_wait_are_sent_in_the_order_in_which_they_came(session: Session, engine: FakeEngineLink) -> None:
    queue = session._queue
    asked = [messages.DoctorRequest(job=name) for name in ("one", "two", "three")]
    for request in asked:
        queue.submit(request)
    session.apply(READY)
    for request in asked:
        assert engine.sent[-1] == request
        session.apply(messages.JobCancelled(job=request.job))


def test_cancelling_shows_at_once_and_asks_the_engine_once(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    job = engine.job
    opened.jobs.cancel()
    opened.jobs.cancel()
    assert opened.document.activity.state is EngineState.CANCELLING
    assert engine.cancelled == [job]
    opened.apply(messages.JobCancelled(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert opened.document.problems == ()


def test_a_job_stopped_by_force_restarts_the_engine_without_a_problem(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    job = engine.job
    opened.jobs.cancel()
    opened.apply(lost(ErrorCode.CANCELLED, job=job))
    assert engine.restarts == 1 and opened.document.problems == ()
    assert opened.document.activity.state is EngineState.STARTING
    opened.jobs.trace()
    opened.apply(READY)
    assert isinstance(engine.sent[-1], messages.TraceRequest) and engine.sent[-1].job != job


def test_a_job_sent_to_a_dying_engine_is_sent_again(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    old = engine.job
    opened.jobs.cancel()
    opened.apply(messages.JobCancelled(job=old))
    opened.jobs.request_environment()
    new = engine.job
    opened.apply(lost(ErrorCode.CANCELLED, job=old))
    opened.apply(READY)
    assert [request.job for request in engine.sent].count(new) == 2


def test_a_crash_is_a_problem_and_the_engine_comes_back(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(lost())
    assert opened.document.problems[0].code is ErrorCode.CRASH
    assert engine.restarts == 1
    assert opened.document.activity.state is EngineState.STARTING
    opened.apply(READY)
    opened.jobs.run()
    assert opened.document.activity.state is EngineState.BUSY


def test_an_engine_that_never_comes_up_is_not_started_for_ever(session: Session, engine: FakeEngineLink) -> None:
    session.apply(lost(ErrorCode.NOT_INSTALLED))
    assert engine.restarts == 0
    assert session.document.activity.state is EngineState.LOST
    session.jobs.request_environment()
    assert engine.restarts == 1
    session.apply(READY)
    assert isinstance(engine.sent[-1], messages.DoctorRequest)


def test_an_engine_that_dies_without_any_work_is_given_up_after_three_times(
    session: Session, engine: FakeEngineLink
) -> None:
    for _ in range(5):
        session.apply(READY)
        session.apply(lost())
    assert engine.restarts == 2
    assert session.document.activity.state is EngineState.LOST


def test_a_new_process_in_the_middle_of_a_trace_is_no_end_of_it_and_nothing_is_sent_twice(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.trace()
    job, sent = engine.job, len(engine.sent)
    opened.apply(messages.AttemptStarted(job=job, name="export", limit_s=600))
    problem = Problem(code=ErrorCode.CRASH, what="Capturing with export ended the engine process")
    outcome = CaptureAttempt(name="export", status=AttemptStatus.CRASHED, error=problem)
    opened.apply(messages.AttemptEnded(job=job, outcome=outcome))
    opened.apply(
        messages.Progress(job=job, phase=messages.Phase.START, detail="a new process, going on without export")
    )
    opened.apply(READY)
    assert opened.document.activity.state is EngineState.BUSY and opened.document.activity.verb is JobKind.TRACE
    assert opened.document.rungs == (outcome,)
    assert not opened.document.problems
    opened.apply(captured(job))
    opened.apply(messages.JobFinished(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert (len(engine.sent), engine.restarts) == (sent, 0)


def test_cancelling_ends_an_engine_that_is_starting_and_what_waits_for_it(
    session: Session, engine: FakeEngineLink, model: Path
) -> None:
    session.files.open_path(model)
    assert engine.cancelled == []  # opening a file drops what waits, not the start
    session.jobs.scan_sensitivity()
    session.jobs.cancel()
    assert engine.cancelled == [""] and not session.document.activity.is_working
    session.apply(lost(ErrorCode.CANCELLED))
    assert session.document.activity.state is EngineState.LOST and session.document.problems == ()
    session.jobs.scan_sensitivity()
    session.apply(READY)
    assert engine.restarts == 1 and isinstance(engine.sent[-1], messages.SensitivityRequest)
