"""The capture panel."""

from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLabel, QToolButton

from ace_studio.gui.panels.capture.method_list import OUTCOME, moved
from ace_studio.records.messages import AttemptEnded, AttemptStarted, ModelCaptured, Phase, Progress, TraceRequest
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS, CaptureControl, ControlKind, ModelChoice, Recipe
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport, Warning
from tests.gui.breaking import PROBLEM
from tests.gui.capturing import LEFT, OUTCOMES, item, report
from tests.gui.comparing import press, two_records
from tests.gui.graph_tables import layered_table
from tests.session.fake_engine_link import result


def test_the_ladder_is_live(desk, capture_panel):
    desk.do("trace")
    job = desk.engine.requests[-1].job
    assert item(capture_panel, "export").text(OUTCOME) == ""
    desk.session.apply(AttemptEnded(job=job, outcome=OUTCOMES[0]))
    desk.session.apply(AttemptStarted(job=job, name="export-strict", limit_s=60.0))
    desk.settle()
    assert item(capture_panel, "export").text(OUTCOME).startswith("could not")
    assert item(capture_panel, "export-strict").text(OUTCOME) == "running …"
    detail = "export-strict: reading the code, 12 s"
    desk.session.apply(Progress(job=job, phase=Phase.CAPTURE, detail=detail, is_pulse=True))
    desk.settle()
    assert item(capture_panel, "export-strict").text(OUTCOME) == "running: reading the code, 12 s"
    assert item(capture_panel, "dynamo").text(OUTCOME) == "waits"
    desk.session.jobs.cancel()
    desk.settle()
    assert not capture_panel.compare_button.isEnabled()
    assert "busy" in capture_panel.compare_button.toolTip()


def test_a_rung_is_tried_earlier_by_button_and_by_key(desk, capture_panel):
    capture_panel.methods.setCurrentItem(item(capture_panel, "dynamo"))
    desk.bot.mouseClick(capture_panel.up_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.rungs[:3] == ("export", "dynamo", "export-strict")
    assert capture_panel.methods.current == "dynamo"
    capture_panel.methods.setFocus()
    desk.bot.keyClick(capture_panel.methods, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    desk.settle()
    assert desk.document.recipe.capture.rungs[0] == "dynamo"
    assert not capture_panel.up_button.isEnabled()
    desk.bot.mouseClick(capture_panel.reset_button, LEFT)
    assert desk.document.recipe.capture.rungs == ALL_CAPTURE_METHODS
    assert moved(("a", "b"), "c", 1) == ("a", "b")


def test_compare_all_rungs_holds_for_one_trace_only(desk, capture_panel):
    desk.bot.mouseClick(capture_panel.compare_button, LEFT)
    request = desk.engine.requests[-1]
    assert isinstance(request, TraceRequest)
    assert request.recipe.capture.compare_rungs
    assert not desk.document.recipe.capture.compare_rungs


def test_a_rung_that_took_too_long_offers_batch_only(desk, capture_panel):
    assert capture_panel.batch_button.isVisible()
    desk.bot.mouseClick(capture_panel.batch_button, LEFT)
    desk.settle()
    assert desk.document.recipe.capture.batch_only
    assert desk.engine.requests[-1].recipe.capture.batch_only
    assert not capture_panel.batch_button.isVisible()


def test_a_kept_capture_says_so_and_can_be_traced_anew(desk):
    desk.captured(layered_table(3), report(cached=True))
    capture_panel = desk.panel("capture")
    assert "Nothing was traced" in capture_panel._summary.text()
    desk.bot.mouseClick(capture_panel.anew_button, LEFT)
    assert not desk.engine.requests[-1].recipe.capture.cache
    job = desk.engine.requests[-1].job
    desk.session.apply(ModelCaptured(job=job, fingerprint="g", capture=report(), graph=layered_table(3)))
    desk.settle()
    assert not capture_panel.anew_button.isVisible()
    assert not desk.document.is_capture_stale


def test_time_limit_batch_only_and_the_kept_captures_are_choices(desk, capture_panel):
    capture_panel.limit.setValue(30)
    desk.bot.mouseClick(capture_panel.batch_only, LEFT, pos=QPoint(10, capture_panel.batch_only.height() // 2))
    desk.bot.mouseClick(capture_panel.keep, LEFT, pos=QPoint(10, capture_panel.keep.height() // 2))
    desk.settle()
    capture = desk.document.recipe.capture
    assert (capture.time_limit_s, capture.batch_only, capture.cache) == (30.0, True, False)
    assert desk.document.is_capture_stale


def test_the_ladder_can_be_copied_as_text(desk, capture_panel):
    desk.bot.mouseClick(capture_panel.copy_button, LEFT)
    assert "export: could not capture it: a branch on a value (1.5 s, – ops)" in QApplication.clipboard().text()
    assert "use where" in QApplication.clipboard().text()


def test_a_control_is_typed_with_the_names_of_the_file_offered_and_removed_again(desk):
    desk.captured(layered_table(3), report(), text="def pick(x):\n    return x\nclass Net:\n    def go(self): ...\n")
    capture_panel = desk.panel("capture")
    editor = capture_panel.controls
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
    idle = Warning(code="idle-control", where="net:pick", what="The control did nothing: fx was not tried")
    desk.captured(layered_table(3), report(warnings=(idle,)))
    desk.session.choices.add_control(CaptureControl(function="net:pick", treat_as=ControlKind.LEAF))
    desk.session.choices.add_control(CaptureControl(function="net:other", treat_as=ControlKind.LEAF))
    capture_panel = desk.panel("capture")
    warned = [one.text() for one in capture_panel.controls.findChildren(QLabel) if one.text().startswith("⚠")]
    assert warned == ["⚠ The control did nothing: fx was not tried"]


RECIPE = Recipe(model=ModelChoice(source="net.py", entry="make"))
EXPORT = CaptureAttempt(name="export", status=AttemptStatus.OK, seconds=1.5, ops=12)
FAILED = CaptureAttempt(name="export", status=AttemptStatus.FAILED, seconds=0.5, error=PROBLEM)
PARTIAL = CaptureAttempt(name="partial", status=AttemptStatus.OK, seconds=4.0, ops=14)


def record(taken, *attempts):
    capture = CaptureReport(rung=taken, ops=attempts[-1].ops, seconds=attempts[-1].seconds, rungs=attempts)
    return RECIPE, replace(result(), capture=capture)


def test_methods_stand_side_by_side_and_what_differs_is_named(desk):
    two_records(desk, record("export", EXPORT), record("partial", FAILED, PARTIAL))
    panel = desk.panel("capture")
    shown = panel.compared
    assert shown.isVisible()
    assert not panel.methods.isVisible()
    assert [line.text() for line in shown.summaries] == [
        "A: export captured 12 ops in 1.5 s.", "B: partial captured 14 ops in 4.0 s."]  # fmt: skip
    columns = [(each.title, [each.text(value) for value in each.values]) for each in shown.model.columns]
    assert columns[:3] == [
        ("method", ["export", "partial"]),
        ("difference", ["differs: taken, outcome, reason, ops", "differs: only in B"]),
        ("A: outcome", ["taken: captured, equal to the original", "–"]),
    ]
    assert columns[3:] == [
        ("B: outcome", ["could not capture it: a branch depends on a value", "taken: captured, equal to the original"]),
        ("A: took", ["1.5 s", "–"]),
        ("B: took", ["0.5 s", "4.0 s"]),
        ("A: ops", ["12", "–"]),
        ("B: ops", ["–", "14"]),
    ]
    assert shown.model.columns[3].tips(0).startswith("a branch depends on a value")
    press(desk, "Swap")
    assert shown.summaries[0].text().startswith("A: partial")
    press(desk, "Back to the present")
    assert (panel.methods.isVisible(), shown.isVisible()) == (True, False)


def test_another_time_alone_is_no_difference(desk):
    two_records(desk, record("export", EXPORT), record("export", replace(EXPORT, seconds=9.0)))
    shown = desk.panel("capture").compared
    assert list(shown.model.columns[1].values) == [""]


def test_a_side_without_a_trace_says_so(desk):
    two_records(desk, (RECIPE, result()), record("export", EXPORT))
    shown = desk.panel("capture").compared
    assert shown.summaries[0].text() == "A: not traced"
    assert list(shown.model.columns[1].values) == [""], "nothing is known to differ"
