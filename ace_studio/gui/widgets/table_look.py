"""The look of all tables: whole rows are selected, no grid, widths by column."""

from collections.abc import Sequence

from PySide6.QtCore import QAbstractItemModel, QItemSelection, QItemSelectionModel, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QTreeWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import Unit, metric_text, percent_text, ratio_text
from ace_studio.records.sweeps import SweepRow
from ace_studio.session.kept.history import RunSummary

_AROUND_TITLE = 4 + 5 + 1
"""Padding of a title and the line beside it, as the stylesheet has them."""


def plain_table(model: QAbstractItemModel, name: str, *, many: bool = False) -> QTableView:
    """A table over a model; ``many`` rows can be selected at once."""
    table = QTableView()
    table.setModel(model)
    table.setAccessibleName(name)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    modes = QAbstractItemView.SelectionMode
    table.setSelectionMode(modes.ExtendedSelection if many else modes.SingleSelection)
    make_plain(table)
    return table


def plain_tree(name: str, titles: Sequence[str]) -> QTreeWidget:
    """A tree with rows of one height; the first column takes the room that the others leave."""
    tree = QTreeWidget()
    tree.setAccessibleName(name)
    tree.setHeaderLabels(titles)
    tree.setUniformRowHeights(True)
    header = tree.header()
    header.setStretchLastSection(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    return tree


def make_plain(table: QTableView) -> None:
    """Give a table the look of all: no grid, rows of one line that a click on a title sorts."""
    table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # in any language, as figures are
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


def show_columns(table: QTableView, model: ColumnsModel, columns: Sequence[Column]) -> bool:
    """Show other columns, as wide as they ask for; those of the same titles keep the widths that the user gave them.

    A title that is longer in the language of the window gets the room that it needs.

    Returns: whether the titles are others.
    """
    are_other = [each.title for each in model.columns] != [each.title for each in columns]
    model.set_columns(columns)
    for at, each in enumerate(columns if are_other else ()):
        needed = table.horizontalHeader().fontMetrics().horizontalAdvance(each.title) + _AROUND_TITLE
        table.setColumnWidth(at, max(each.width, needed))
    return are_other


def select_rows(table: QTableView, rows: Sequence[int]) -> None:
    """Select these visible rows and no others.

    `QTableView.selectRow` does what a click would: it keeps one row of several, and with Ctrl held it toggles.
    """
    model, flags = table.model(), QItemSelectionModel.SelectionFlag
    selection = QItemSelection()
    for row in rows:
        selection.select(model.index(row, 0), model.index(row, model.columnCount() - 1))
    if rows:
        table.selectionModel().setCurrentIndex(model.index(rows[0], 0), flags.NoUpdate)
    table.selectionModel().select(selection, flags.ClearAndSelect | flags.Rows)


def count_words(model: ColumnsModel, total: str) -> str:
    """``12 of 300 ops``; while the filter leaves all only the ``total`` of these words."""
    shown = model.rowCount()
    return total if shown == model.total else tr("{shown} of {total}", shown=shown, total=total)


def figure_columns(runs: Sequence[RunSummary | SweepRow]) -> list[Column]:
    """The columns of what a run reached, one row per run: latency, both speed-ups, metric and drop."""
    unit = Unit.of(run.latency_ms for run in runs)
    return [
        Column(title=tr("latency, {unit}", unit=unit.name), values=[run.latency_ms for run in runs], text=unit.text,
               is_number=True, width=92),
        Column(title="speed-up", values=[run.speedup for run in runs], text=ratio_text, is_number=True, width=84,
               tip="Over eager fp32"),
        Column(title="vs fp32", values=[run.float_speedup for run in runs], text=ratio_text, is_number=True, width=76,
               tip=tr("Over fp32 in the same runtime; nothing where that was not measured")),
        Column(title="metric", values=[run.metric for run in runs], text=metric_text, is_number=True, width=76),
        Column(title="drop", values=[run.metric_drop for run in runs], text=percent_text, is_number=True, width=76),
    ]  # fmt: skip
