"""A selection of rows that stays quick for very many rows, in a table over `ColumnsModel`.

Qt keeps ranges of cells: 17,000 separate rows of 50,000 cost it 11 s, and listing 50,000 selected rows 6 s. Here a
selection is one flag per row. It survives filtering and sorting.
"""

from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView, QWidget

from ace_studio.gui.widgets.table_model import AnyIndex, ColumnsModel

Flag = QItemSelectionModel.SelectionFlag
_FEW = 100
"""So many rows are also told to Qt, which tells screen readers."""


class RowSelection(QItemSelectionModel):
    """The selected rows of the columns. Gestures reach it through `select`, as they do in every view."""

    chosen_by_hand = Signal()
    """After a gesture changed it."""

    def __init__(self, model: ColumnsModel) -> None:
        super().__init__(model)
        self._columns = model
        self._before = self.flags = np.zeros(model.total, dtype=bool)
        """``flags``: one per row of the columns. ``_before``: without the range that is being drawn."""

    @property
    def rows(self) -> list[int]:
        """The selected rows of the columns, ascending."""
        return np.flatnonzero(self.flags).tolist()

    def show_rows(self, rows: list[int]) -> None:
        """Select these rows of the columns and nothing else, without a signal."""
        self._before = self.flags = np.zeros(self._columns.total, dtype=bool)
        self.flags[rows] = True
        self._tell_qt()

    def select(self, what: Any, command: QItemSelectionModel.SelectionFlag, /) -> None:
        """What Qt's own does: a range of rows is added, removed, toggled, or replaces everything or the last range."""
        if command == Flag.NoUpdate:
            return
        if command & Flag.Clear or len(self.flags) != self._columns.total:
            self._before = np.zeros(self._columns.total, dtype=bool)
        elif not command & Flag.Current:
            self._before = self.flags
        self.flags = self._before.copy()
        for first, last in _ranges(what):
            rows = self._columns.source_rows(first, last)
            self.flags[rows] = ~self.flags[rows] if command & Flag.Toggle else bool(command & Flag.Select)
        self._tell_qt()
        self.chosen_by_hand.emit()

    def reset(self) -> None:
        """Other rows are visible: what is selected stays, unless the columns are others."""
        kept, before = self.flags, self._before
        super().reset()
        if len(kept) == self._columns.total:
            self.flags, self._before = kept, before
            self._tell_qt()

    def is_chosen(self, index: AnyIndex) -> bool:
        """Whether the row of a cell is selected."""
        row = self._columns.source_row(index.row())
        return row < len(self.flags) and bool(self.flags[row])

    def _tell_qt(self) -> None:
        told = QItemSelection()
        last = self._columns.columnCount() - 1
        if np.count_nonzero(self.flags) <= _FEW:
            for place in self._columns.view_rows(self.rows):
                told.select(self._columns.index(place, 0), self._columns.index(place, last))
        super().select(told, Flag.ClearAndSelect)


def _ranges(what: Any) -> list[tuple[int, int]]:
    """First and last row of each range of a `QItemSelection`, or of one index."""
    if isinstance(what, QItemSelection):
        ranges = [what.at(at) for at in range(what.size())]
        return [(one.top(), one.bottom()) for one in ranges]
    return [(what.row(), what.row())] if what.isValid() else []


class RowsTable(QTableView):
    """A table whose selection is a `RowSelection`."""

    def __init__(self, model: ColumnsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.chosen = RowSelection(model)
        self.setSelectionModel(self.chosen)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setItemDelegate(_Cells(self))

    def show_rows(self, rows: list[int]) -> None:
        """Select rows of the columns, and scroll to the first that the filter leaves."""
        self.chosen.show_rows(rows)
        self.viewport().update()
        if rows:
            # In the next turn of the event loop: a table that was just made does not have its size yet.
            QTimer.singleShot(0, self, partial(self._scroll_to_row, rows[0]))

    def _scroll_to_row(self, row: int) -> None:
        model = self.model()
        if isinstance(model, ColumnsModel) and (place := model.view_row(row)) >= 0:
            self.scrollTo(model.index(place, 0))

    def selectionCommand(self, index: AnyIndex, event: QEvent | None = None) -> QItemSelectionModel.SelectionFlag:  # noqa: N802 - Qt's name
        """A right click on a selected row keeps the selection for its menu."""
        is_right = isinstance(event, QMouseEvent) and event.button() == Qt.MouseButton.RightButton
        if is_right and index.isValid() and self.chosen.is_chosen(index):
            return Flag.NoUpdate
        return super().selectionCommand(index, event)


class _Cells(QStyledItemDelegate):
    def __init__(self, table: RowsTable) -> None:
        super().__init__(table)
        self._table = table

    def initStyleOption(self, option: QStyleOptionViewItem, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        super().initStyleOption(option, index)
        if self._table.chosen.is_chosen(index):
            option.state |= QStyle.StateFlag.State_Selected
