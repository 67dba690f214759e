"""Events of the engine become findings in the document."""

import pytest
from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import OpKind
from ace_studio.records.results import CaptureReport, Warning
from ace_studio.session.run_warnings import job_warnings
from tests.gui.graph_tables import partial_capture
from tests.session.fake_engine_link import READY, captured, fix_of, lost, result, target_run


@pytest.mark.parametrize(("fingerprint", "kept"), [("same", 1), ("other", 0)])
def test_fixes_are_kept_for_the_capture_that_they_were_found_for(partial, engine, fingerprint, kept):
    before = partial.document.fingerprint
    partial.jobs.try_fixes("/models/net.py", 10)
    partial.apply(messages.FixTried(job=engine.job, fix=fix_of("/models/net.py", 10)))
    partial.apply(messages.JobFinished(job=engine.job))
    partial.jobs.trace()
    event = captured(engine.job, "a")
    partial.apply(replace(event, fingerprint=before if fingerprint == "same" else "other"))
    assert before and len(partial.document.fixes) == kept


def test_a_trace_that_fails_leaves_the_reason_until_the_next_one(opened, engine):
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="No rung captured it", where="model.py:3")
    opened.jobs.trace()
    opened.apply(messages.JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.failure.problems == (problem,)
    assert opened.document.graph is None
    opened.jobs.trace()
    assert opened.document.failure is None


def test_a_graph_without_its_end_keeps_the_reason_at_its_frontier(opened, engine):
    table, capture = partial_capture(2)
    cut = replace(table, kind=tuple(OpKind.OP if kind is OpKind.OUTPUT else kind for kind in table.kind))
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="It stopped at op 12")
    opened.jobs.trace()
    opened.apply(messages.ModelCaptured(job=engine.job, fingerprint="f", capture=capture, graph=cut))
    opened.apply(messages.JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.failure.job == opened.document.graph_job


def test_a_run_that_fails_after_a_whole_capture_is_no_failure_of_the_capture(opened, engine):
    table, _ = partial_capture(2)
    opened.jobs.run()
    whole = CaptureReport(rung="export", ops=3, seconds=1.0)
    opened.apply(messages.ModelCaptured(job=engine.job, fingerprint="f", capture=whole, graph=table))
    opened.apply(messages.JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.NO_DATA, what="No data"),)))
    assert opened.document.failure is None


def test_a_process_that_dies_while_tracing_is_the_reason_too_and_refused_trust_is_none(opened, engine):
    opened.jobs.trace()
    opened.apply(lost(job=engine.job))
    assert opened.document.failure.problems[0].code is ErrorCode.CRASH
    opened.apply(captured("other", "a"))
    opened.jobs.trace()
    assert isinstance(engine.sent[-1], messages.TraceRequest)
    opened.apply(messages.JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.UNTRUSTED, what="May it run?"),)))
    assert opened.document.failure is None


def test_a_folder_that_results_cannot_be_written_to_is_no_failure_of_the_capture(opened, engine):
    opened.jobs.run()
    problem = Problem(code=ErrorCode.USAGE, what="Results cannot be written to /r", remedy="Name another folder.")
    opened.apply(messages.JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.failure is None and problem in opened.document.problems


def test_a_warning_of_a_running_job_is_shown_at_once_and_only_once(opened, engine):
    silent = Problem(code=ErrorCode.TIMEOUT, what="nothing was reported", remedy="wait, or stop it")
    opened.jobs.trace()
    for _ in range(2):
        opened.apply(messages.JobWarned(job=engine.job, problem=silent))
    assert opened.document.problems == (silent,)
    assert opened.document.activity.is_working and opened.document.failure is None


def test_a_warning_is_shown_before_the_run_ends_and_not_after_the_next_one_began(opened, engine):
    leaked = Warning(code="leaked-calibration", what="16 of 16 samples are also evaluated on")
    opened.jobs.run()
    opened.apply(messages.WarningFound(job=engine.job, warning=leaked))
    assert job_warnings(opened.document) == (leaked,) and opened.document.activity.is_working
    opened.apply(messages.JobFinished(job=engine.job))
    opened.jobs.run()
    assert job_warnings(opened.document) == ()


def run_once(session, engine):
    session.jobs.run()
    session.apply(messages.JobFinished(job=engine.job, result=result(target_run("openvino")), output="/runs/1"))


@pytest.mark.parametrize("ending", ["failed", "cancelled", "lost"])
def test_a_run_that_ends_before_it_has_a_figure_leaves_the_results_before_it(opened, engine, ending):
    run_once(opened, engine)
    before = opened.document
    for _ in range(2):
        opened.jobs.run()
        assert opened.document.runs == ()
        job = engine.job
        problem = Problem(code=ErrorCode.NO_DATA, what="No data")
        events = {
            "failed": messages.JobFailed(job=job, problems=(problem,)),
            "cancelled": messages.JobCancelled(job=job),
            "lost": lost(job=job),
        }
        opened.apply(events[ending])
        opened.apply(READY)
        after = opened.document
        assert after.runs == before.runs and after.result is before.result and after.output == before.output
        assert after.selection.run == before.selection.run


def test_the_figures_of_a_run_that_ends_early_stay_in_view(opened, engine):
    run_once(opened, engine)
    opened.jobs.run()
    opened.apply(messages.TargetFinished(job=engine.job, index=0, fingerprint="f", run=target_run("onnxruntime")))
    opened.apply(messages.JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.CRASH, what="x"),)))
    assert [run.target for run in opened.document.runs] == ["onnxruntime"]
    assert opened.document.result is None
