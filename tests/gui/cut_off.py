"""Texts that are cut off, and controls that cover each other."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QRadioButton, QScrollArea, QWidget

SLACK = 1
"""Pixels by which a text may be wider than its room: sizes are rounded."""


def cut_texts(shown: QWidget) -> set[tuple[str, str]]:
    """Kind and text of each label and button whose text does not fit and that has no tool tip with the whole text."""
    cut = set()
    for part in shown.findChildren(QWidget):
        if not part.isVisibleTo(shown) or part.width() <= 0 or part.toolTip():
            continue
        if isinstance(part, QLabel) and part.text() and part.textFormat() is not Qt.TextFormat.RichText:
            room = part.contentsRect()
            needed = part.heightForWidth(part.width()) if part.wordWrap() else part.sizeHint().height()
            wide = 0 if part.wordWrap() else part.fontMetrics().horizontalAdvance(part.text().split("\n")[0])
            if wide > room.width() + SLACK or needed > part.height() + SLACK:
                cut.add((type(part).__name__, part.text()))
        elif isinstance(part, QPushButton | QCheckBox | QRadioButton) and _width(part) > part.width() + SLACK:
            cut.add((type(part).__name__, part.text()))
    return cut


def overlaps(shown: QWidget) -> set[tuple[str, str]]:
    """Pairs of visible controls of one layout that cover each other."""
    found = set()
    for holder in [shown, *shown.findChildren(QWidget)]:
        layout = holder.layout()
        if layout is None or not holder.isVisibleTo(shown) or isinstance(holder, QScrollArea):
            continue
        parts = [layout.itemAt(at).widget() for at in range(layout.count())]
        seen = [part for part in parts if part is not None and part.isVisibleTo(shown) and part.parent() is holder]
        for at, one in enumerate(seen):
            for other in seen[at + 1 :]:
                common = one.geometry() & other.geometry()
                if common.width() > SLACK and common.height() > SLACK:
                    found.add((_name(one), _name(other)))
    return found


def _width(button: QPushButton | QCheckBox | QRadioButton) -> int:
    return button.fontMetrics().horizontalAdvance(button.text().replace("&", ""))


def _name(part: QWidget) -> str:
    return f"{type(part).__name__} {part.accessibleName() or part.objectName()}".strip()
