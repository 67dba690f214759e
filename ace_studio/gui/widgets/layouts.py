"""How widgets are put beside and below each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, TypeVar, Unpack

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QScrollArea, QSplitter, QVBoxLayout, QWidget

from ace_studio.gui.style.sizes import GAP


class _Room(TypedDict, total=False):
    margin: int | tuple[int, int, int, int]
    """Of all sides, or left, top, right and bottom."""
    gap: int
    stretch: int
    """Which item takes the room that is left."""


_Box = TypeVar("_Box", QHBoxLayout, QVBoxLayout)


def column(*items: QWidget | QLayout | None, **room: Unpack[_Room]) -> QVBoxLayout:
    """Items below each other; None is a stretch."""
    return _fill(QVBoxLayout(), items, room)


def row(*items: QWidget | QLayout | None, **room: Unpack[_Room]) -> QHBoxLayout:
    """Items beside each other; None is a stretch."""
    return _fill(QHBoxLayout(), items, room)


def _fill(layout: _Box, items: Iterable[QWidget | QLayout | None], room: _Room) -> _Box:
    margin = room.get("margin", 0)
    layout.setContentsMargins(*((margin,) * 4 if isinstance(margin, int) else margin))
    layout.setSpacing(room.get("gap", GAP))
    for item in items:
        if item is None:
            layout.addStretch(1)
        elif isinstance(item, QWidget):
            layout.addWidget(item)
        else:
            layout.addLayout(item)
    if "stretch" in room:
        layout.setStretch(room["stretch"], 1)
    return layout


def box(layout: QLayout) -> QWidget:
    """A widget that holds a layout."""
    made = QWidget()
    made.setLayout(layout)
    return made


def split(*parts: QWidget, sizes: Sequence[int], across: bool = True, can_close: bool = False) -> QSplitter:
    """Parts with movable borders, beside or (not ``across``) below each other; ``can_close``: down to no width."""
    made = QSplitter(Qt.Orientation.Horizontal if across else Qt.Orientation.Vertical, handleWidth=1)
    made.setChildrenCollapsible(can_close)
    for part in parts:
        made.addWidget(part)
    made.setSizes(sizes)
    return made


class BesideOrAbove(QWidget):
    """A wide part with a narrow one at its right, or below it where less than ``least`` pixels would be left."""

    def __init__(self, wide: QLayout, narrow: QLayout, *, least: int, margin: int | tuple[int, int, int, int]) -> None:
        super().__init__()
        self._narrow = narrow
        self._least = least
        self._line = row(wide, narrow, margin=margin, stretch=0)
        self.setLayout(self._line)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Choose between beside and below."""
        super().resizeEvent(event)
        is_wide = self.width() >= self._least + self._narrow.sizeHint().width()
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._line.setDirection(across if is_wide else down)


def clear_layout(layout: QLayout) -> None:
    """Remove all items and delete the widgets."""
    while (item := layout.takeAt(0)) is not None:
        old = item.widget()
        if old is not None:
            old.hide()
            old.deleteLater()


def scrolling(content: QWidget) -> QScrollArea:
    """Wrap a widget in a scroll area."""
    area = QScrollArea(widgetResizable=True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    content.setProperty("role", "surface")
    area.setWidget(content)
    return area
