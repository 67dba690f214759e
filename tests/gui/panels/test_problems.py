"""The problems panel: what happened, why, what to do, and where; details on request."""

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed
from ace_studio.records.results import RunStatus, Warning
from tests.gui.graph_tables import partial_capture
from tests.gui.run_results import TABLE, result_of, run_of, show_result


def test_problems_show_what_why_remedy_and_details_on_request(desk):
    desk.traced()
    desk.engine.by_itself = False
    desk.do("trace")
    problem = Problem(
        code=ErrorCode.USER_CODE, what="forward() raised", why="x", remedy="y", where="m.py:3", details="T"
    )
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    panel = desk.panel("problems")
    texts = {
        label.text() for label in panel.findChildren(type(desk.window.bars.problem._headline)) if label.isVisible()
    }
    assert {"forward() raised", "x", "→ y", "m.py:3"} <= texts


def test_a_click_dismisses_a_problem(desk):
    desk.open_example()
    desk.session.report(Problem(code=ErrorCode.USAGE, what="Something"))
    panel = desk.panel("problems")
    close = next(one for one in panel.findChildren(object) if getattr(one, "accessibleName", str)() == "Dismiss")
    desk.bot.mouseClick(close, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.problems == ()


def test_problems_count_the_breaks_show_them_on_request_and_list_what_the_capture_warns_of(desk):
    table, capture = partial_capture(3)
    warned = Warning(code="random", what="draws random numbers", where="m.py:7")
    desk.captured(table, replace(capture, warnings=(warned,)))
    panel = desk.panel("problems")
    texts = {label.text() for label in panel.findChildren(QLabel)}
    assert {"The capture stops at 2 breaks, 5 ops left eager", "draws random numbers", "m.py:7"} <= texts
    show = next(each for each in panel.findChildren(QPushButton) if each.text() == "Show breaks")
    desk.bot.mouseClick(show, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.workbench.panel("breaks").isVisible()


def test_every_warning_is_listed_and_counted_on_the_tab_and_why_a_run_was_dropped_is_none(desk, charts):
    of_job = Warning(code="fake-calibration", what="Calibrated on random data", where="[calibration] inputs")
    of_run = Warning(code="dropped", what="slower than another")
    show_result(desk, TABLE, result_of(TABLE, (replace(run_of(TABLE), warnings=(of_run,)),), warnings=(of_job,)))
    texts = {label.text() for label in desk.panel("problems").findChildren(QLabel)}
    assert "Calibrated on random data" in texts
    assert not {"slower than another", "[calibration] inputs"} & texts
    tabs = desk.window.workbench._tabs["bottom"]
    assert "Problems (1)" in [tabs.tabText(at) for at in range(tabs.count())]
    status = next(each for each in desk.panel("results").model.columns if each.title == "status")
    assert "ok" in status.values
    assert "slower than another" in [status.tips(at) for at in range(len(status.values))]


def test_a_target_that_failed_is_told_with_its_cause_and_counted_on_the_tab(desk, charts):
    error = Problem(code=ErrorCode.UNSUPPORTED, what="ONNX Runtime refuses the model", why="x", remedy="y", details="T")
    failed = replace(run_of(TABLE), target="onnxruntime", status=RunStatus.FAILED, error=error)
    show_result(desk, TABLE, result_of(TABLE, (run_of(TABLE), failed)))
    panel = desk.panel("problems")
    assert {error.what, "x", "→ y"} <= {label.text() for label in panel.findChildren(QLabel) if label.isVisible()}
    tabs = desk.window.workbench._tabs["bottom"]
    assert "Problems (1)" in [tabs.tabText(at) for at in range(tabs.count())]
    (details,) = (each for each in panel.findChildren(QPushButton) if each.text() == "Details")
    desk.bot.mouseClick(details, Qt.MouseButton.LeftButton)
    assert panel.findChild(QPlainTextEdit).isVisible()
