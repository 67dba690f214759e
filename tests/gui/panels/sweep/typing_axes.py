"""Typing into the lines of the axes."""

from PySide6.QtCore import Qt


def typed(desk, axis, text):
    field = desk.sweep.axes.fields[axis]
    field.setFocus()
    field.selectAll()
    desk.bot.keyClicks(field, text)
    desk.bot.keyClick(field, Qt.Key.Key_Return)
    desk.settle()
