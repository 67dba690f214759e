"""A layout that wraps a row of widgets into lines."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from ace_studio.gui.style.sizes import CLOSE


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
