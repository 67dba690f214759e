"""A capture in subgraphs with breaks, and clicks in the panel of breaks."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixKind, FixReport, FixStatus
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind

LEFT = Qt.MouseButton.LeftButton


FILE = "/models/net.py"


CONTROL = CaptureControl(function="net:pick", treat_as=ControlKind.NONSTRICT_TRACE)


PROBLEM = Problem(
    code=ErrorCode.NOT_CAPTURED, what="a branch depends on a value", why="w", remedy="r", where=f"{FILE}:7, Net"
)


def fix(**more):
    values = {
        "kind": FixKind.NONSTRICT_TRACE,
        "title": "mark pick",
        "status": FixStatus.GREEN,
        "file": FILE,
        "line": 10,
    }
    return FixReport(**values | more)


def words_in(widget):
    return {each.text() for each in widget.findChildren(QLabel) if each.isVisibleTo(widget)}


def click_row(desk, panel, at):
    place = panel.table.visualRect(panel.model.index(panel.model.view_row(at), 1)).center()
    desk.bot.mouseClick(panel.table.viewport(), LEFT, pos=place)
    desk.settle()


def press(desk, parent, text):
    found = next(each for each in parent.findChildren(QPushButton) if each.text() == text)
    desk.bot.mouseClick(found, LEFT)
    desk.settle()
