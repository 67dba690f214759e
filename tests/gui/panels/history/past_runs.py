"""Clicks in the list of past runs."""

from PySide6.QtCore import Qt

LEFT = Qt.MouseButton.LeftButton


def click(desk, panel, row, keys=Qt.KeyboardModifier.NoModifier):
    place = panel.table.visualRect(panel.model.index(row, 1)).center()
    desk.bot.mouseClick(panel.table.viewport(), LEFT, keys, place)
    desk.settle()
