"""Texts that are cut off, and controls that cover each other."""

import re
from html import unescape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QScrollArea,
    QStyle,
    QStyleOptionComboBox,
    QTabBar,
    QToolButton,
    QWidget,
)

SLACK = 1
"""Pixels by which a text may be wider than its room: sizes are rounded."""
FORMS_FIT = 1024
"""Width of a window in which no form scrolls sideways, px; in a narrower one it may."""


def cut_texts(shown: QWidget) -> set[tuple[str, str]]:
    """Kind and text of what does not fit and has no tool tip with the whole text: labels, buttons, fields, headers.

    A form that has to be scrolled sideways is one too, in a window of `FORMS_FIT` or wider.
    """
    seen = [part for part in shown.findChildren(QWidget) if part.isVisibleTo(shown) and part.width() > 0]
    return {(type(part).__name__, text) for part in seen for text in _cut_in(part) if not _tells(part.toolTip(), text)}


def _tells(tip: str, text: str) -> bool:
    """Whether a tool tip has the whole text, so that it can be read though it does not fit."""
    return _plain(text) in _plain(tip)


def _plain(text: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", "", text)).split())


def _cut_in(part: QWidget) -> list[str]:
    match part:
        case QLabel() if part.text() and part.textFormat() is not Qt.TextFormat.RichText:
            return [part.text()] * _is_cut_label(part)
        case QScrollArea() if part.window().width() >= FORMS_FIT and part.horizontalScrollBar().maximum() > 0:
            return [f"{_name(part.widget())} is wider than its scroll area"]
        case QToolButton() if part.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonIconOnly:
            return []
        case QAbstractButton():
            return [part.text()] * (_wide(part, part.text()) > part.width() + SLACK)
        case QComboBox():
            return [part.currentText()] * (_wide(part, part.currentText()) > _field_of(part) + SLACK)
        case QLineEdit() if not part.text():
            return [part.placeholderText()] * (_wide(part, part.placeholderText()) > part.width() - 4)
        case QTabBar():
            return [part.tabText(at) for at in range(part.count()) if part.isTabVisible(at) and _is_cut_tab(part, at)]
        case QHeaderView() if part.orientation() is Qt.Orientation.Horizontal and part.model():
            return _cut_titles(part)
    return []


def _is_cut_label(part: QLabel) -> bool:
    needed = part.heightForWidth(part.width()) if part.wordWrap() else part.sizeHint().height()
    wide = 0 if part.wordWrap() else _wide(part, part.text().split("\n")[0])
    return wide > part.contentsRect().width() + SLACK or needed > part.height() + SLACK


def _field_of(combo: QComboBox) -> int:
    option = QStyleOptionComboBox()
    combo.initStyleOption(option)
    field = QStyle.SubControl.SC_ComboBoxEditField
    return combo.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, combo).width()


def _is_cut_tab(tabs: QTabBar, at: int) -> bool:
    return (
        not _tells(tabs.tabToolTip(at), tabs.tabText(at)) and _wide(tabs, tabs.tabText(at)) > tabs.tabRect(at).width()
    )


def _cut_titles(header: QHeaderView) -> list[str]:
    cut, model = [], header.model()
    for at in range(header.count()):
        title, tip = (
            str(model.headerData(at, Qt.Orientation.Horizontal, role) or "")
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
        )
        if title and not _tells(tip, title) and 0 < header.sectionSize(at) < _wide(header, title):
            cut.append(title)
    return cut


def _wide(part: QWidget, text: str) -> int:
    return part.fontMetrics().horizontalAdvance(text.replace("&", ""))


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


def _name(part: QWidget) -> str:
    return f"{type(part).__name__} {part.accessibleName() or part.objectName()}".strip()
