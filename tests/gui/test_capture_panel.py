"""The ladder, its options and the controls, with real clicks."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QToolButton

from ace_studio.gui.panels.capture.method_tree import NAME, OUTCOME
from ace_studio.gui.panels.capture.rows import method_rows, moved
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import AttemptEnded, AttemptStarted, ModelCaptured, Phase, Progress, TraceRequest
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS, CaptureControl, ControlKind
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport, Warning
from tests.gui.graph_tables import layered_table

LEFT = Qt.MouseButton.LeftButton
WHY = Problem(
    code=ErrorCode.NOT_CAPTURED, what="a branch on a value", why="unknown side", remedy="use where", where="m.py:3"
)
OUTCOMES = (
    CaptureAttempt(name="export", status=AttemptStatus.FAILED, seconds=1.5, error=WHY),
    CaptureAttempt(name="export-strict", status=AttemptStatus.TIMEOUT, seconds=60.0),
    CaptureAttempt(name="dynamo", status=AttemptStatus.OK, seconds=2.0, ops=9),
    CaptureAttempt(name="fx", status=AttemptStatus.SKIPPED),
)


def report(**more):
    return CaptureReport(rung="dynamo", ops=9, seconds=3.5, rungs=OUTCOMES, **more)


@pytest.fixture
def panel(desk):
    desk.captured(layered_table(3), report())
    return desk.panel("capture")


def item(panel, name):
    tree = panel.methods
    items = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    return next(one for one in items if one.data(NAME, Qt.ItemDataRole.UserRole) == name)


def click_check_box(desk, panel, name):
    rect = panel.methods.visualItemRect(item(panel, name))
    desk.bot.mouseClick(panel.methods.viewport(), LEFT, pos=QPoint(rect.left() + 9, rect.center().y()))
    desk.settle()


def test_every_method_is_shown_with_its_outcome_in_words_and_its_problem_below_it(panel):
    assert [item(panel, name).text(NAME) for name in ALL_CAPTURE_METHODS] == list(ALL_CAPTURE_METHODS)
    failed = item(panel, "export")
    assert failed.text(OUTCOME) == "could not capture it: a branch on a value"
    assert [(failed.child(at).text(0), failed.child(at).text(1)) for at in range(failed.childCount())] == [
        ("why", "unknown side"), ("what helps", "use where"), ("where", "m.py:3"),
    ]  # fmt: skip
    assert item(panel, "export-strict").text(OUTCOME) == "took too long"
    taken = item(panel, "dynamo")
    assert taken.text(OUTCOME) == "captured, equal to eager – taken"
    assert taken.font(NAME).bold()
    assert (taken.text(2), taken.text(3)) == ("2.0 s", "9")
    assert item(panel, "fx").text(OUTCOME) == "not tried"
    assert all(not item(panel, one.name).icon(OUTCOME).isNull() for one in OUTCOMES)


def test_the_list_of_methods_is_live(desk, panel):
    desk.do("trace")
    job = desk.engine.requests[-1].job
    assert item(panel, "export").text(OUTCOME) == ""
    desk.session.apply(AttemptEnded(job=job, outcome=OUTCOMES[0]))
    desk.session.apply(AttemptStarted(job=job, name="export-strict", limit_s=60.0))
    desk.settle()
    assert item(panel, "export").text(OUTCOME).startswith("could not")
    assert item(panel, "export-strict").text(OUTCOME) == "at work …"
    detail = "export-strict: reading the code, 12 s"
    desk.session.apply(Progress(job=job, phase=Phase.CAPTURE, detail=detail, is_pulse=True))
    desk.settle()
    assert item(panel, "export-strict").text(OUTCOME) == "at work: reading the code, 12 s"
    assert item(panel, "dynamo").text(OUTCOME) == "waits"
    desk.session.jobs.cancel()
    desk.settle()
    assert not panel.compare_button.isEnabled()
    assert "busy" in panel.compare_button.toolTip()


def test_a_method_is_switched_off_and_on_with_its_check_box_and_undo_works(desk, panel):
    click_check_box(desk, panel, "fx")
    assert desk.document.recipe.capture.rungs == ("export", "export-strict", "dynamo", "partial")
    assert item(panel, "fx").checkState(NAME) is Qt.CheckState.Unchecked
    desk.do("undo")
    assert desk.document.recipe.capture.rungs == ALL_CAPTURE_METHODS
    assert item(panel, "fx").checkState(NAME) is Qt.CheckState.Checked


def test_the_last_method_cannot_be_switched_off(desk, panel):
    desk.session.choices.set_rungs(["fx"])
    desk.settle()
    click_check_box(desk, panel, "fx")
    assert desk.document.recipe.capture.rungs == ("fx",)
    assert item(panel, "fx").checkState(NAME) is Qt.CheckState.Checked
    assert "At least one capture method" in desk.document.problems[-1].what


def test_a_method_is_tried_earlier_by_button_and_by_key(desk, panel):
    panel.methods.setCurrentItem(item(panel, "dynamo"))
    desk.bot.mouseClick(panel.up_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.rungs[:3] == ("export", "dynamo", "export-strict")
    assert panel.methods.current == "dynamo"
    desk.bot.keyClick(panel.methods, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    desk.settle()
    assert desk.document.recipe.capture.rungs[0] == "dynamo"
    assert not panel.up_button.isEnabled()
    desk.bot.mouseClick(panel.reset_button, LEFT)
    assert desk.document.recipe.capture.rungs == ALL_CAPTURE_METHODS
    assert moved(("a", "b"), "c", 1) == ("a", "b")


def test_compare_all_rungs_holds_for_one_trace_only(desk, panel):
    desk.bot.mouseClick(panel.compare_button, LEFT)
    request = desk.engine.requests[-1]
    assert isinstance(request, TraceRequest)
    assert request.recipe.capture.compare_rungs
    assert not desk.document.recipe.capture.compare_rungs


def test_a_method_that_took_too_long_offers_batch_only(desk, panel):
    assert panel.batch_button.isVisible()
    desk.bot.mouseClick(panel.batch_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.batch_only
    assert desk.engine.requests[-1].recipe.capture.batch_only
    assert not panel.batch_button.isVisible()


def test_a_kept_capture_says_so_and_can_be_traced_anew(desk):
    desk.captured(layered_table(3), report(cached=True))
    panel = desk.panel("capture")
    assert "Nothing was traced" in panel._summary.text()
    desk.bot.mouseClick(panel.anew_button, LEFT)
    assert not desk.engine.requests[-1].recipe.capture.cache
    job = desk.engine.requests[-1].job
    desk.session.apply(ModelCaptured(job=job, fingerprint="g", capture=report(), graph=layered_table(3)))
    desk.settle()
    assert not panel.anew_button.isVisible()
    assert not desk.document.is_capture_stale


def test_time_limit_batch_only_and_the_kept_captures_are_choices(desk, panel):
    panel.limit.setValue(30)
    desk.bot.mouseClick(panel.batch_only, LEFT, pos=QPoint(10, panel.batch_only.height() // 2))
    desk.bot.mouseClick(panel.keep, LEFT, pos=QPoint(10, panel.keep.height() // 2))
    desk.settle()
    capture = desk.document.recipe.capture
    assert (capture.time_limit_s, capture.batch_only, capture.cache) == (30.0, True, False)
    assert desk.document.is_capture_stale


def test_a_control_is_typed_with_the_names_of_the_file_offered_and_removed_again(desk):
    desk.captured(layered_table(3), report(), text="def pick(x):\n    return x\nclass Net:\n    def go(self): ...\n")
    panel = desk.panel("capture")
    editor = panel.controls
    assert {"net:pick", "net:Net", "net:Net.go"} <= set(editor._names.stringList())
    assert not editor.add_button.isEnabled()
    editor.function.setText("net:pick")  # typing would open the list of names, for which this screen has no keyboard
    editor.kind.setCurrentIndex(editor.kind.findText("fx_wrap"))
    desk.bot.mouseClick(editor.add_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.controls == (CaptureControl(function="net:pick", treat_as=ControlKind.FX_WRAP),)
    assert editor.function.text() == ""
    remove = next(
        one for one in editor.findChildren(QToolButton) if one.accessibleName() == "Remove fx_wrap for net:pick"
    )
    desk.bot.mouseClick(remove, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.controls == ()
    desk.do("undo")
    assert len(desk.document.recipe.capture.controls) == 1


def test_a_control_that_did_nothing_is_warned_of_beside_it(desk):
    idle = Warning(code="idle-control", what="The control net:pick as leaf did nothing: fx was not tried")
    desk.captured(layered_table(3), report(warnings=(idle,)))
    desk.session.choices.add_control(CaptureControl(function="net:pick", treat_as=ControlKind.LEAF))
    desk.session.choices.add_control(CaptureControl(function="net:other", treat_as=ControlKind.LEAF))
    panel = desk.panel("capture")
    warned = [one.text() for one in panel.controls.findChildren(QLabel) if one.text().startswith("⚠")]
    assert warned == ["⚠ The control net:pick as leaf did nothing: fx was not tried"]


def test_the_list_of_methods_can_be_copied_as_text(desk, panel):
    desk.bot.mouseClick(panel.copy_button, LEFT)
    assert "export: could not capture it: a branch on a value (1.5 s, – ops)" in QApplication.clipboard().text()
    assert "use where" in QApplication.clipboard().text()


def test_rungs_that_are_off_come_last(desk, panel):
    desk.session.choices.set_rungs(["partial", "dynamo"])
    rows = method_rows(desk.document)
    assert [row.name for row in rows] == ["partial", "dynamo", "export", "export-strict", "fx"]
    assert [row.is_on for row in rows] == [True, True, False, False, False]
