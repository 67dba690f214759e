"""The verbs that ask the engine for work."""

from __future__ import annotations

from pathlib import Path

from ace_studio.records.errors import ErrorCode
from ace_studio.records.fixes import FixStatus
from ace_studio.records.messages import (
    DoctorRequest,
    EnvironmentFound,
    EnvironmentReport,
    FixRequest,
    FixTried,
    JobFinished,
    RunRequest,
    ValuesFound,
    ValuesRequest,
)
from ace_studio.records.values import OpValues
from ace_studio.session.document import EngineState, JobKind
from ace_studio.session.session import Session
from tests.session.fake_engine_link import (
    READY,
    FakeEngineLink,
    captured,
    fix_of,
    result,
    target_run,
)


def test_a_new_run_clears_the_runs_before_it_but_not_the_graph(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.run()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))
    opened.jobs.run()
    assert opened.document.runs == () and opened.document.result is None
    assert opened.document.graph is not None
    assert isinstance(engine.sent[-1], RunRequest) and Path(engine.sent[-1].output).is_absolute()


def test_one_job_at_a_time(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    sent = len(engine.sent)
    opened.jobs.run()
    assert len(engine.sent) == sent
    assert "busy" in opened.document.problems[0].what


def test_nothing_starts_without_a_model(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.trace()
    assert engine.sent == [] and session.document.problems[0].code is ErrorCode.USAGE


def test_the_environment_is_asked_for_and_kept(session: Session, engine: FakeEngineLink) -> None:
    session.apply(READY)
    session.jobs.request_environment()
    assert isinstance(engine.sent[-1], DoctorRequest)
    report = EnvironmentReport(
        python="3.11", executable="p", platform="l", cpu="c", cores=2, memory_bytes=1, versions={}
    )
    session.apply(EnvironmentFound(job=engine.job, report=report))
    assert session.document.environment is report


def test_fixes_are_asked_for_one_place_and_collected(partial, engine):
    partial.jobs.try_fixes("/models/net.py", 10)
    request = engine.sent[-1]
    assert isinstance(request, FixRequest)
    assert (request.file, request.line) == ("/models/net.py", 10)
    assert partial.document.activity.verb is JobKind.FIX
    assert partial.document.activity.is_working
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 10, FixStatus.FAILED)))
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 10)))
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 20)))
    partial.apply(JobFinished(job=engine.job))
    assert [(fix.line, fix.status) for fix in partial.document.fixes] == [(10, FixStatus.GREEN), (20, FixStatus.GREEN)]
    assert partial.document.activity.state is EngineState.IDLE
    partial.jobs.try_fixes("/models/net.py", 20)
    assert [fix.line for fix in partial.document.fixes] == [10]


def test_the_values_of_an_op_are_those_of_the_selected_run_and_no_step_of_a_job(
    opened: Session, engine: FakeEngineLink
) -> None:
    opened.jobs.run()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/tmp/o"))
    opened.view.select_run(0)
    steps = opened.document.steps
    opened.jobs.show_values("a", example=1)
    request = engine.sent[-1]
    assert isinstance(request, ValuesRequest) and (request.target, request.example) == ("eager", 1)
    values = OpValues(op_id="a", precision="fp32", example=1, examples=2, tensors=())
    opened.apply(ValuesFound(job=engine.job, fingerprint=opened.document.fingerprint, values=values))
    assert opened.document.values is values and opened.document.steps == steps
    assert opened.document.activity.state is EngineState.IDLE


def test_values_of_another_graph_than_the_shown_one_are_not_shown(opened: Session, engine: FakeEngineLink) -> None:
    opened.jobs.trace()
    opened.apply(captured(engine.job, "a"))
    opened.apply(JobFinished(job=engine.job))
    opened.jobs.show_values("a")
    values = OpValues(op_id="a", precision="fp32", example=0, examples=1, tensors=())
    opened.apply(ValuesFound(job=engine.job, fingerprint="another", values=values))
    assert opened.document.values is None and "another graph" in opened.document.problems[-1].what
