"""A and B for the tests of panels: two runs of the example, or of the history, and their difference shown."""

from datetime import UTC, datetime

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.plan import Precision
from tests.gui.gestures import LEFT


def press(desk, name):
    """Click a button of the bar of A and B."""
    bar = desk.window.bars.pins
    desk.bot.mouseClick(next(each for each in bar.findChildren(QPushButton) if each.text() == name), LEFT)
    desk.settle()


def two_plans(desk):
    """The example, run as it is and with fp16 as B; the difference is shown."""
    if not desk.has_begun("compared_plans"):
        compare_with_another_plan(desk.ran())
    return desk.document.comparison


def compare_with_another_plan(desk):
    desk.do("pin-A")
    desk.session.plan.set_default_precision(Precision.FP16)
    desk.do("run")
    desk.do("pin-B")
    press(desk, "Show the difference")


def two_records(desk, *records):
    """Two pairs of a recipe and a result as runs of the history, chosen there and compared; the first is A."""
    desk.open_example()
    for day, (recipe, result) in enumerate(records, start=1):
        desk.session.history.store.add(
            result, recipe_toml=recipe_text(recipe), title="net.py", output="/gone", folder="/models",
            date=datetime(2026, 11, day, 12, 0, tzinfo=UTC),
        )  # fmt: skip
    panel = desk.panel("history")
    desk.bot.waitUntil(lambda: panel.model.rowCount() == len(records))
    for row, keys in ((0, Qt.KeyboardModifier.NoModifier), (1, Qt.KeyboardModifier.ControlModifier)):
        place = panel.table.visualRect(panel.model.index(row, 1)).center()
        desk.bot.mouseClick(panel.table.viewport(), LEFT, keys, place)
    desk.settle()
    desk.bot.mouseClick(panel.compare_button, LEFT)
    desk.settle()
    assert desk.document.comparison is not None
