"""How widgets are put beside and below each other, and how far apart. Pixels are logical, before scaling."""

from collections.abc import Iterable, Sequence
from typing import TypedDict, TypeVar, Unpack

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

SYMBOL_PX = 15
"""Arrows and signs that are buttons."""
LETTER_PX = 10
"""Letters in the swatches of the legend."""

HAIR = 2
"""Between lines of one thing."""
TIGHT = 4
"""Between a name and its field, and between the lines of a card."""
CLOSE = 6
"""Between buttons of one group, and above and below the tools of a panel."""
GAP = 8
"""Between neighbours."""
MARGIN = 12
"""Around the content of a dialog, a form or a card."""


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


class Flow(QLayout):
    """Left to right, then down."""

    def __init__(self, *widgets: QWidget, gap: int = CLOSE) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self._gap = gap
        self.setContentsMargins(0, 0, 0, 0)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802 - Qt's name
        """Put an item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802 - Qt's name
        """The item at a place."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802 - Qt's name
        """Take an item out."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802 - Qt's name
        """It takes any width."""
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:  # noqa: N802 - Qt's name
        """A narrower row is higher."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802 - Qt's name
        """Height of all lines."""
        room = self.contentsMargins()
        inner = width - room.left() - room.right()
        return self._arrange(QRect(0, 0, inner, 0), moves=False) + room.top() + room.bottom()

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802 - Qt's name
        """Place the items."""
        super().setGeometry(rect)
        self._arrange(self.contentsRect(), moves=True)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """All in one line."""
        sizes = [item.sizeHint() for item in self._shown()]
        width = sum(size.width() for size in sizes) + self._gap * max(0, len(sizes) - 1)
        return self._with_margins(QSize(width, max((size.height() for size in sizes), default=0)))

    def minimumSize(self) -> QSize:  # noqa: N802 - Qt's name
        """The widest item alone."""
        sizes = [item.minimumSize() for item in self._shown()]
        width = max((size.width() for size in sizes), default=0)
        return self._with_margins(QSize(width, max((size.height() for size in sizes), default=0)))

    def _with_margins(self, size: QSize) -> QSize:
        room = self.contentsMargins()
        return size + QSize(room.left() + room.right(), room.top() + room.bottom())

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _arrange(self, rect: QRect, *, moves: bool) -> int:
        """Arrange the lines, the items of a line on one middle; returns their height.

        An item that is wider than a line shrinks to it.
        """
        y = rect.top()
        for line in self._lines(rect.width()):
            x, tallest = rect.left(), max(item.sizeHint().height() for item in line)
            for item in line:
                size = item.sizeHint()
                size.setWidth(min(size.width(), max(rect.width(), item.minimumSize().width())))
                if moves:
                    item.setGeometry(QRect(QPoint(x, y + (tallest - size.height()) // 2), size))
                x += size.width() + self._gap
            y += tallest + self._gap
        return max(0, y - self._gap - rect.top())

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        """The items of each line."""
        lines: list[list[QLayoutItem]] = []
        right = 0
        for item in self._shown():
            needed = item.sizeHint().width()
            if not lines or right + needed > width:
                lines.append([])
                right = 0
            lines[-1].append(item)
            right += needed + self._gap
        return lines
