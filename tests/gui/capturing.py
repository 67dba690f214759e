"""Outcomes of capture methods."""

from PySide6.QtCore import Qt

from ace_studio.gui.panels.capture.method_list import NAME
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import AttemptStatus, CaptureAttempt, CaptureReport

LEFT = Qt.MouseButton.LeftButton


WHY = Problem(
    code=ErrorCode.NOT_CAPTURED, what="a branch on a value", why="unknown side", remedy="use where", where="m.py:3"
)


OUTCOMES = (
    CaptureAttempt(name="export", status=AttemptStatus.FAILED, seconds=1.5, error=WHY),
    CaptureAttempt(name="export-strict", status=AttemptStatus.TIMEOUT, seconds=60.0),
    CaptureAttempt(name="dynamo", status=AttemptStatus.OK, seconds=2.0, ops=9),
    CaptureAttempt(name="fx", status=AttemptStatus.SKIPPED, reason="dynamo gave it"),
)


def report(**more):
    return CaptureReport(rung="dynamo", ops=9, seconds=3.5, rungs=OUTCOMES, **more)


def item(capture_panel, name):
    tree = capture_panel.methods
    items = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    return next(one for one in items if one.data(NAME, Qt.ItemDataRole.UserRole) == name)
