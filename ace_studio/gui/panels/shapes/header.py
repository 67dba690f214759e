"""The header of the shape table: the arguments of forward above, the columns of their tensors below."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHeaderView, QTableView

from ace_studio.gui.panels.shapes.table_model import ShapesModel
from ace_studio.gui.style.theme import Theme

_PADDING = 6


class GroupHeader(QHeaderView):
    """Two lines; a click on a group folds it into one column."""

    folded = Signal(str)
    """Name of the group that was clicked."""

    def __init__(self, model: ShapesModel, theme: Theme, parent: QTableView) -> None:
        """Show the columns of a model."""
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._model = model
        self._theme = theme
        self.kinds: Mapping[str, str] = {}
        """Group -> what it is passed as, where the name does not say it."""
        self.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.setMinimumSectionSize(72)
        self.setHighlightSections(False)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """One line more than a plain header."""
        size = super().sizeHint()
        return QSize(size.width(), size.height() + self._line)

    @property
    def _line(self) -> int:
        return self.fontMetrics().height() + _PADDING

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:  # noqa: N802 - Qt's name
        """Paint the title of a column in the lower line."""
        super().paintSection(painter, rect.adjusted(0, self._line, 0, 0), section)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the columns, then the groups above them."""
        super().paintEvent(event)
        colours = self._theme.colours
        painter = QPainter(self.viewport())
        painter.fillRect(0, 0, self.viewport().width(), self._line, QColor(colours.raised))
        for group, place in self.group_places():
            painter.setPen(QColor(colours.border))
            painter.drawLine(place.topRight(), place.bottomRight())
            painter.drawLine(place.bottomLeft(), place.bottomRight())
            painter.setPen(QColor(colours.text))
            shown = place.intersected(self.viewport().rect()).adjusted(_PADDING, 0, -_PADDING, 0)
            text = self.fontMetrics().elidedText(self.group_text(group), Qt.TextElideMode.ElideRight, shown.width())
            painter.drawText(shown, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.end()

    def group_places(self) -> list[tuple[str, QRect]]:
        """Each group with its place in the upper line."""
        found = []
        at = 0
        for group, columns in groupby(self._model.columns, key=lambda column: column.group):
            count = len(list(columns))
            left = self.sectionViewportPosition(at)
            width = sum(self.sectionSize(each) for each in range(at, at + count))
            found.append((group, QRect(left, 0, width, self._line)))
            at += count
        return found

    def group_text(self, group: str) -> str:
        """``▾ state (tuple)``."""
        arrow = "▸" if group in self._model.folded else "▾"
        return f"{arrow} {group} {self.kinds.get(group, '')}".rstrip()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Fold or unfold the group under the pointer."""
        place = event.position().toPoint()
        group = next((name for name, where in self.group_places() if where.contains(place)), "")
        if group and event.button() is Qt.MouseButton.LeftButton:
            self.folded.emit(group)
        else:
            super().mousePressEvent(event)
