"""An engine process that is replaced in the middle of a trace: the document shows the rung, and the trace goes on."""

from __future__ import annotations

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import AttemptEnded, AttemptStarted, JobFinished, Phase, Progress
from ace_studio.records.results import AttemptStatus, CaptureAttempt
from ace_studio.session.document import EngineState, Verb
from ace_studio.session.session import Session
from tests.session.fake_engine_link import READY, FakeEngineLink, captured


def test_a_new_process_in_the_middle_of_a_trace_is_no_end_of_it_and_nothing_is_sent_twice(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.trace()
    job, sent = engine.job, len(engine.sent)
    opened.apply(AttemptStarted(job=job, name="export", limit_s=600))
    problem = Problem(code=ErrorCode.CRASH, what="Capturing with export ended the engine process")
    outcome = CaptureAttempt(name="export", status=AttemptStatus.CRASHED, error=problem)
    opened.apply(AttemptEnded(job=job, outcome=outcome))
    opened.apply(Progress(job=job, phase=Phase.START, detail="a new process, going on without export"))
    opened.apply(READY)
    assert opened.document.activity.state is EngineState.BUSY and opened.document.activity.verb is Verb.TRACE
    assert opened.document.rungs == (outcome,)
    assert not opened.document.problems
    opened.apply(captured(job))
    opened.apply(JobFinished(job=job))
    assert opened.document.activity.state is EngineState.IDLE
    assert (len(engine.sent), engine.restarts) == (sent, 0)
