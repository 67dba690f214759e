"""Breaks, fixes, failures and past runs in the session."""

from __future__ import annotations

import sqlite3

import pytest
from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixKind, FixReport, FixStatus
from ace_studio.records.graph import OpKind
from ace_studio.records.messages import (
    FixRequest,
    FixTried,
    JobFailed,
    JobFinished,
    ModelCaptured,
    TraceRequest,
)
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import EngineState, Verb
from ace_studio.session.kept.history import History
from tests.gui.graph_tables import partial_capture
from tests.session.fake_engine_link import captured, lost, result, target_run

CONTROL = CaptureControl(function="model:pick", treat_as=ControlKind.NONSTRICT_TRACE)


def fix_of(file: str, line: int, status: FixStatus = FixStatus.GREEN, **more) -> FixReport:
    return FixReport(
        kind=FixKind.NONSTRICT_TRACE, title="mark pick as nonstrict_trace", status=status, file=file, line=line, **more
    )


@pytest.fixture
def partial(opened, engine):
    """A session with a capture in four subgraphs; the breaks between the first and the last two are one line."""
    table, capture = partial_capture(4, lines=(10, 20, 10))
    opened.jobs.trace()
    text = {"/models/net.py": "x\n" * 40}
    opened.apply(ModelCaptured(job=engine.job, fingerprint="f", capture=capture, graph=table, sources=text))
    opened.apply(JobFinished(job=engine.job))
    return opened


def test_a_break_is_selected_with_all_its_rows_and_its_line(partial):
    partial.view.select_seam(0)
    chosen = partial.document.selection
    assert chosen.op_ids == ("break_0", "break_2")
    assert (chosen.seam, chosen.place) == (0, ("/models/net.py", 10))


def test_a_selected_row_of_the_graph_is_its_break(partial):
    partial.view.select(["break_1"])
    assert partial.document.selection.seam == 1
    partial.view.select(["break_1", "p0_linear_0"])
    assert partial.document.selection.seam is None
    partial.view.select_seam(7)
    assert partial.document.selection.op_ids == ()


def test_a_line_of_a_file_that_the_capture_did_not_bring_is_read(partial, model):
    partial.view.select_place("model.py", 1)
    assert partial.document.selection.place == (str(model), 1)
    assert "make_model" in partial.document.sources[str(model)]
    partial.view.select_place("nothing.py", 3)
    assert partial.document.selection.place is None


def test_the_code_of_the_model_is_read_before_any_trace_and_anew_after_an_edit(opened, engine, model):
    opened.view.read_model_source()
    assert opened.document.sources == {str(model): "def make_model(): ...\n"}
    model.write_text("def make_model(): pass\n")
    opened.jobs.trace()
    assert opened.document.sources == {}
    opened.view.read_model_source()
    assert "pass" in opened.document.sources[str(model)]


def test_fixes_are_asked_for_one_place_and_collected(partial, engine):
    partial.jobs.try_fixes("/models/net.py", 10)
    request = engine.sent[-1]
    assert isinstance(request, FixRequest)
    assert (request.file, request.line) == ("/models/net.py", 10)
    assert partial.document.activity.verb is Verb.FIX
    assert partial.document.activity.is_working
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 10, FixStatus.FAILED)))
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 10)))
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 20)))
    partial.apply(JobFinished(job=engine.job))
    assert [(fix.line, fix.status) for fix in partial.document.fixes] == [(10, FixStatus.GREEN), (20, FixStatus.GREEN)]
    assert partial.document.activity.state is EngineState.IDLE
    partial.jobs.try_fixes("/models/net.py", 20)
    assert [fix.line for fix in partial.document.fixes] == [10]


@pytest.mark.parametrize(("fingerprint", "kept"), [("same", 1), ("other", 0)])
def test_fixes_are_kept_for_the_capture_that_they_were_found_for(partial, engine, fingerprint, kept):
    before = partial.document.fingerprint
    partial.jobs.try_fixes("/models/net.py", 10)
    partial.apply(FixTried(job=engine.job, fix=fix_of("/models/net.py", 10)))
    partial.apply(JobFinished(job=engine.job))
    partial.jobs.trace()
    event = captured(engine.job, "a")
    partial.apply(replace(event, fingerprint=before if fingerprint == "same" else "other"))
    assert before and len(partial.document.fixes) == kept


def test_a_control_of_a_fix_is_a_choice_that_undo_takes_back(partial):
    partial.choices.apply_fix(fix_of("/models/net.py", 10, control=CONTROL))
    assert partial.document.recipe.capture.controls == (CONTROL,)
    partial.choices.add_control(replace(CONTROL, treat_as=ControlKind.DISABLE))
    assert [one.treat_as for one in partial.document.recipe.capture.controls] == [ControlKind.DISABLE]
    partial.choices.undo()
    partial.choices.undo()
    assert partial.document.recipe.capture.controls == ()
    partial.choices.add_control(CONTROL)
    partial.choices.remove_control(0)
    assert partial.document.recipe.capture.controls == ()


def test_a_patch_is_never_applied_by_itself(partial):
    before = partial.document.recipe
    partial.choices.apply_fix(fix_of("/models/net.py", 10, patch="--- a\n+++ b\n"))
    assert partial.document.recipe is before
    assert partial.document.problems[-1].code is ErrorCode.USAGE


def test_a_trace_that_fails_leaves_the_reason_until_the_next_one(opened, engine):
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="No rung captured it", where="model.py:3")
    opened.jobs.trace()
    opened.apply(JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.failure.problems == (problem,)
    assert opened.document.graph is None
    opened.jobs.trace()
    assert opened.document.failure is None


def test_a_graph_without_its_end_keeps_the_reason_at_its_frontier(opened, engine):
    table, capture = partial_capture(2)
    cut = replace(table, kind=tuple(OpKind.OP if kind is OpKind.OUTPUT else kind for kind in table.kind))
    problem = Problem(code=ErrorCode.NOT_CAPTURED, what="It stopped at op 12")
    opened.jobs.trace()
    opened.apply(ModelCaptured(job=engine.job, fingerprint="f", capture=capture, graph=cut))
    opened.apply(JobFailed(job=engine.job, problems=(problem,)))
    assert opened.document.failure.job == opened.document.graph_job
    opened.view.dismiss_failure()
    assert opened.document.failure is None


def test_a_run_that_fails_after_a_whole_capture_is_no_failure_of_the_capture(opened, engine):
    table, _ = partial_capture(2)
    opened.jobs.run()
    whole = CaptureReport(rung="export", ops=3, seconds=1.0)
    opened.apply(ModelCaptured(job=engine.job, fingerprint="f", capture=whole, graph=table))
    opened.apply(JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.NO_DATA, what="No data"),)))
    assert opened.document.failure is None


def test_a_process_that_dies_while_tracing_is_the_reason_too_and_refused_trust_is_none(opened, engine):
    opened.jobs.trace()
    opened.apply(lost(job=engine.job))
    assert opened.document.failure.problems[0].code is ErrorCode.CRASH
    opened.apply(captured("other", "a"))
    opened.jobs.trace()
    assert isinstance(engine.sent[-1], TraceRequest)
    opened.apply(JobFailed(job=engine.job, problems=(Problem(code=ErrorCode.UNTRUSTED, what="May it run?"),)))
    assert opened.document.failure is None


def test_past_runs_are_listed_opened_again_and_forgotten(opened, engine, model):
    opened.history.load_history()
    assert opened.document.history == ()
    opened.jobs.run()
    opened.apply(JobFinished(job=engine.job, result=result(target_run("eager")), output="/out"))
    (past,) = opened.document.history
    assert (past.title, past.output) == ("model.py", "/out")
    opened.choices.set_entry("other")
    opened.history.open_past_run(past.id)
    assert (opened.document.recipe.model.entry, opened.document.folder) == ("make_model", str(model.parent))
    assert opened.document.recipe_path == ""
    opened.history.remove_past_runs([past.id])
    assert opened.document.history == ()


def test_a_history_of_an_earlier_version_is_taken_over(tmp_path):
    path = tmp_path / "h.sqlite"
    history = History(path)
    run_id = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py")
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE run DROP COLUMN folder")
        database.execute("PRAGMA user_version = 1")
    assert history.get(run_id).folder == ""
    second = history.add(result(target_run("eager")), recipe_toml="format = 1", title="m.py", folder="/models")
    assert history.get(second).folder == "/models"
