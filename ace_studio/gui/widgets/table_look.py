"""The look of all tables: whole rows are selected, no grid, widths by column."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QTableView

from ace_studio.gui.widgets.table_model import ColumnsModel


def plain_table(model: ColumnsModel, name: str, *, many: bool = False) -> QTableView:
    """A table over columns; ``many`` rows can be selected at once."""
    table = QTableView()
    table.setModel(model)
    table.setAccessibleName(name)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    modes = QAbstractItemView.SelectionMode
    table.setSelectionMode(modes.ExtendedSelection if many else modes.SingleSelection)
    table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 10)
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    header.setSortIndicatorClearable(True)
    table.setSortingEnabled(True)
    return table


def set_widths(table: QTableView, model: ColumnsModel) -> None:
    """Set the widths that the columns ask for."""
    for at, each in enumerate(model.columns):
        table.setColumnWidth(at, each.width)
