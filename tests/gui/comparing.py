"""A and B for the tests of panels: two runs of the example, made with other plans, and their difference shown."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton

from ace_studio.records.recipes.plan import Precision
from tests.gui.gestures import LEFT


def press(desk, name):
    """Click a button of the bar of A and B."""
    bar = desk.window.bars.pins
    desk.bot.mouseClick(next(each for each in bar.findChildren(QPushButton) if each.text() == name), LEFT)
    desk.settle()


def two_plans(desk):
    """The example, run as it is and with fp16 as B; the difference is shown."""
    desk.ran().do("pin-A")
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.do("run")
    desk.do("pin-B")
    press(desk, "Show the difference")
    return desk.document.comparison
