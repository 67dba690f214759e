"""The run panel: the phase, the steps so far, and the log."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.panels.run import _left_words, preview_words
from ace_studio.gui.shell.panel_table import PANELS
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import (
    JobCancelled,
    JobFailed,
    LogLine,
    ModelCaptured,
    Phase,
    Progress,
    RunRequest,
    WorkerLost,
)
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import AttemptStatus
from ace_studio.session.document import EngineState, JobKind, StepTime
from ace_studio.session.run_preview import RunPreview
from tests.gui.gestures import LEFT


def test_a_run_comes_to_the_front_and_then_its_results(desk):
    desk.running()
    assert desk.window.workbench.current(next(iter({row.place for row in PANELS if row.id == "run"}))) == "run"
    request = desk.engine.requests[-1]
    assert isinstance(request, RunRequest)
    desk.engine.answer(request)
    desk.bot.waitUntil(lambda: desk.window.workbench.panel("results").isVisible(), timeout=2000)
    assert desk.document.result is not None


def test_esc_cancels_what_is_going_on(desk):
    desk.running()
    desk.bot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.engine.cancelled == [desk.engine.requests[-1].job]
    assert desk.document.activity.state is EngineState.CANCELLING


def test_long_words_about_a_job_take_no_room_from_the_panel_beside_it(desk):
    desk.running()
    run, widths = desk.panel("run"), []
    for words in ("short", "building for a target with a long name, part 12 of 345 " * 5):
        desk.session.apply(Progress(job=desk.engine.requests[-1].job, phase=Phase.LOWER, detail=words, fraction=0.25))
        desk.settle()
        widths.append(run.minimumSizeHint().width())
    assert widths[0] == widths[1]
    assert run._detail.width() > 100
    desk.window.resize(1000, 640)
    desk.settle()
    assert run._phase.width() >= run._phase.sizeHint().width(), "the name of the phase is never cut"


def test_in_a_low_and_narrow_panel_the_words_and_buttons_keep_their_height(desk):
    run = desk.traced().panel("run")
    desk.window.resize(900, 600)
    desk.settle()
    rows = desk.window.workbench._rows
    for height, has_preview in ((300, True), (100, False)):
        rows.setSizes([rows.height() - height, height])
        desk.settle()
        assert run.preview.isVisible() is has_preview
        for each in (run._phase, run.trace_button, run.run_button):
            assert each.height() >= each.minimumSizeHint().height()
            assert each.mapTo(run, each.rect().bottomLeft()).y() <= run.height()


def test_a_flood_of_log_lines_is_shown_without_a_repaint_per_line(desk):
    run = desk.traced().panel("run")
    for number in range(3000):
        desk.session.apply(LogLine(text=f"line {number}"))
    desk.settle()
    lines = run.log.toPlainText().splitlines()
    assert lines[-1] == "line 2999"
    assert len(lines) == len(desk.document.log)


def step_rows(run):
    items = [run.steps.topLevelItem(at) for at in range(run.steps.topLevelItemCount())]
    return [(item.text(0), item.text(1)) for item in items]


def test_what_became_of_the_targets_stands_above_the_steps_and_methods_that_were_not_tried_nowhere(desk):
    rows = step_rows(desk.ran().panel("run"))
    names = [name for name, _ in rows]
    targets = [f"{run.target} {run.built_words}" for run in desk.document.runs]
    assert names[: 1 + len(targets)] == [desk.document.baseline.name, *targets]
    assert AttemptStatus.SKIPPED in {attempt.status for attempt in desk.document.rungs}
    assert [name for name in names if name.startswith("capture: ")] == ["capture: export"]
    assert not any("not tried" in outcome for _, outcome in rows)


def test_while_a_job_stops_nothing_says_what_it_was_doing(desk):
    desk.running()
    run = desk.panel("run")
    desk.session.apply(Progress(job=desk.engine.requests[-1].job, phase=Phase.COMPRESS, detail="example 1 of 8"))
    desk.settle()
    assert run._detail.text() == "example 1 of 8"
    desk.bot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.settle()
    assert (run._phase.text(), run._detail.text()) == ("Stopping", "")


def test_steps_that_a_cache_saved_do_not_shorten_what_is_expected_of_the_rest():
    saved = StepTime(phase=Phase.CAPTURE, usual_s=20.0, seconds=0.1)
    to_come = StepTime(phase=Phase.LOWER, usual_s=60.0, seconds=None)
    assert _left_words((saved, to_come), 0.0) == ", about 1:00 left"
    assert _left_words((replace(saved, seconds=40.0), to_come), 0.0) == ", about 2:00 left"


def test_steps_say_the_share_done_and_a_cancelled_run_is_said(desk):
    desk.ran()
    desk.engine.by_itself = False
    desk.do("run")
    run = desk.panel("run")
    job = desk.engine.requests[-1].job
    desk.session.apply(Progress(job=job, phase=Phase.LOWER, fraction=0.25))
    desk.settle()
    run._show_elapsed()
    rows = dict(step_rows(run))
    assert rows["Building"].endswith(", 25 %")
    assert rows["Measuring latency"].startswith("to come, about ")
    assert " left" in run._elapsed.text() or "nearly done" in run._elapsed.text()
    desk.session.apply(JobCancelled(job=job))
    desk.settle()
    assert run._phase.text() == "Cancelled"
    assert not any("to come" in outcome for _, outcome in step_rows(run))


@pytest.mark.parametrize("end", [lambda job, why: JobFailed(job=job, problems=(why,)),
                                 lambda job, why: WorkerLost(job=job, problem=why)])  # fmt: skip
def test_a_run_that_ends_early_with_its_graph_captured_says_why(desk, end):
    desk.running()
    why = Problem(code=ErrorCode.CRASH, what="The engine process was killed")
    said = desk.engine.events_for(desk.engine.requests[-1])
    desk.session.apply(next(event for event in said if isinstance(event, ModelCaptured)))
    desk.session.apply(end(desk.engine.requests[-1].job, why))
    desk.settle()
    assert desk.document.graph is not None and desk.document.failure is None
    assert desk.panel("run")._phase.text() == "Failed: The engine process was killed"
    desk.engine.by_itself = True
    desk.do("trace")
    assert desk.panel("run")._phase.text() == "Traced"


def shown(queue):
    return [queue.list.item(at).text() for at in range(queue.list.count())]


def test_runs_wait_in_a_list_are_moved_and_taken_out_by_clicks(desk):
    desk.traced()
    desk.engine.by_itself = False
    run = desk.panel("run")
    assert not run.queue.isVisible()
    for precision in (Precision.FP32, Precision.FP16, Precision.BF16):
        desk.session.plan.set_default_precision(precision)
        desk.do("run")
    assert run.run_button.text() == "Run after this (F6)"
    assert [text.split(",")[0] for text in shown(run.queue)] == [
        "1.  running:  fp32", "2.  waiting:  fp16", "3.  waiting:  bf16",
    ]  # fmt: skip
    assert "fp16 → bf16" in run.queue.list.item(2).toolTip()
    run.queue.list.setCurrentRow(2)
    assert not run.queue.down.isEnabled()
    desk.bot.mouseClick(run.queue.up, LEFT)
    desk.settle()
    assert shown(run.queue)[1].startswith("2.  waiting:  bf16")
    desk.bot.mouseClick(run.queue.remove, LEFT)
    desk.settle()
    assert len(shown(run.queue)) == 2
    desk.engine.answer(desk.engine.requests[-1])
    desk.settle()
    assert [text.split("  ")[1] for text in shown(desk.panel("run").queue)] == ["done:", "running:"]


def test_a_run_says_what_it_will_do_and_cost(desk):
    panel = desk.traced().panel("run")
    assert "No earlier run says how long it takes" in panel.preview.text()
    desk.do("run")
    panel = desk.panel("run")
    assert panel.preview.isVisible()
    found = RunPreview(targets=("a", "b"), is_searched=False, builds=2, seconds=110.0)
    assert preview_words(found) == (
        "Run builds 1 plan for 2 targets (a, b): 2 builds. About 1:50, by the last run of this model."
    )
    for others, words in (((9.0, 110.0), "Runs of other models took 9.0 s to 1:50."),
                          ((9.0, 9.0), "About 9.0 s, by a run of another model.")):  # fmt: skip
        found = RunPreview(targets=(), is_searched=False, builds=None, seconds=None, others_s=others)
        assert preview_words(found).endswith(words)
        assert preview_words(found, cancelled_s=180.0).endswith("The one that was cancelled had taken 3:00.")
        assert preview_words(found, cancelled_s=5.0).endswith(words), "it says less than what is known"


def test_a_first_run_is_expected_to_take_what_another_model_took(desk):
    desk.session.settings.remember_newest("step-seconds", f"{JobKind.RUN} folder/other.py", {Phase.LOWER.name: 9.0})
    assert "About 9.0 s, by a run of another model." in desk.traced().panel("run").preview.text()


def test_while_a_file_is_looked_at_its_buttons_ask_for_a_run_as_the_keys_do(desk, tmp_path):
    desk.trusted()
    desk.engine.by_itself = False
    (tmp_path / "net.py").write_text("def make_net(): ...", encoding="utf-8")
    desk.window.commands.open_path(str(tmp_path / "net.py"))
    run = desk.panel("run")
    assert desk.document.is_looked_at and not run.preview.isVisible()
    desk.bot.mouseClick(run.run_button, LEFT)
    desk.settle()
    assert desk.document.wished is JobKind.RUN
    assert desk.window.step_line.buttons["run"].isEnabled()


def test_a_run_of_a_file_that_has_changed_says_that_it_waits_for_trust(desk):
    desk.running()
    problem = Problem(code=ErrorCode.UNTRUSTED, what="It has changed", details=f"sha256:{'f' * 64}")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.settle()
    assert desk.panel("run")._phase.text() == "Trust comes first"
    assert desk.window.status_line._what.text() == "Trust comes first, then Run"
