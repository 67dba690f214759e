"""Opening and typing into the forms of the plan."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox


def opened(desk, int8_plan):
    """All parts of the panel, unfolded."""
    for section in int8_plan.sections.values():
        section.head.setChecked(True)
    int8_plan.measure.decode_part.head.setChecked(True)
    desk.settle()
    return int8_plan


def note(form, name):
    found = form.notes[name]
    return found.text() if found.isVisibleTo(form) else ""


def type_in(desk, editor, text):
    """Click into an editor, type, and leave it by Return."""
    line = editor.findChild(QComboBox).lineEdit() if not hasattr(editor, "selectAll") else editor
    line.setFocus()
    line.selectAll()
    desk.bot.keyClicks(line, text)
    if not text:
        desk.bot.keyClick(line, Qt.Key.Key_Delete)
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()
