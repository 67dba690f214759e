"""The widget of the shape table: example rows to edit, then the verdicts and the verified sizes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QTableView

from ace_studio.gui.panels.shapes.cell_editors import CellDelegate
from ace_studio.gui.panels.shapes.rows import ColumnKind, Row, ShapeColumn, cell_text, with_cells
from ace_studio.gui.panels.shapes.table_model import ShapesModel
from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.records.tensors import DimChoice, InputFinding

_ENTER = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space})
_MANY = 6
"""A group of more inputs than this is folded at first."""


class ShapeTable(QTableView):
    """Examples and verdicts."""

    folding_changed = Signal()
    """A group was folded or unfolded: show the inputs again."""
    rows_edited = Signal(tuple)
    """All rows, after one cell was edited."""
    sizes_edited = Signal(dict)
    """Dimension -> smallest, usual and largest size for targets."""
    verdict_clicked = Signal(str)
    """Name of a dimension (``x.0``) whose chip was clicked or chosen with Enter."""

    def __init__(self, theme: Theme, model: type[ShapesModel] = ShapesModel) -> None:
        super().__init__(wordWrap=False)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._model = model(self)
        self._chips = CellDelegate(theme, self)
        self.setModel(self._model)
        self.setItemDelegate(self._chips)
        self.setAccessibleName(tr("Examples and verdicts"))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.groups = GroupHeader(self._model, theme, self)
        self.groups.folded.connect(self.fold)
        self.setHorizontalHeader(self.groups)
        self._seen: set[str] = set()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 12)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._model.edited.connect(self.rows_edited)
        self._model.sizes_edited.connect(self.sizes_edited)
        self.clicked.connect(self._activate)

    @property
    def columns(self) -> tuple[ShapeColumn, ...]:
        """The columns that are shown."""
        return self._model.columns

    @property
    def has_columns(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._model.columns)

    def show_inputs(
        self,
        rows: Sequence[Row],
        findings: Sequence[InputFinding],
        *,
        dims: Mapping[str, DimChoice],
        is_stale: bool,
        refused: Mapping[int, str] | None = None,
        sizes: Mapping[str, tuple[int, ...]] | None = None,
        offers: Mapping[str, Sequence[tuple[str, str]]] | None = None,
        tuples: Sequence[str] = (),
    ) -> None:
        """Show examples and verdicts.

        Args:
            rows: The examples.
            findings: What was traced.
            dims: What is asked of dimensions.
            is_stale: Whether choices changed since the trace.
            refused: Index of a row -> why no graph accepts it.
            sizes: What targets are built for; None if none wants it.
            offers: Input -> values that suit it, and why.
            tuples: Inputs that are passed as a tuple.
        """
        self._fold_large_groups(rows[0] if rows else {finding.name: None for finding in findings})
        self._model.offers = offers or {}
        self.groups.kinds = dict.fromkeys(tuples, "(tuple)")
        self._chips.is_stale = is_stale
        self._model.refused = refused or {}
        self._model.alarm = QColor(self._chips.colours.bad)
        current = self.currentIndex()
        place = (current.row(), current.column())
        self._model.fill(rows, findings, dims, sizes)
        self.groups.viewport().update()
        if place[0] >= 0 and not self.currentIndex().isValid():
            self.setCurrentIndex(self._model.index(*place))

    def _fold_large_groups(self, names: Iterable[str]) -> None:
        """Fold groups of many inputs, such as a cache, when they are first seen."""
        counts = Counter(name.partition(".")[0] for name in names)
        self._model.folded |= {group for group, count in counts.items() if count > _MANY and group not in self._seen}
        self._seen |= set(counts)

    def fold(self, group: str) -> None:
        """Show a group as one column, or all its columns again."""
        self._model.folded ^= {group}
        self.folding_changed.emit()

    @property
    def group(self) -> str:
        """The group of the current column; empty without one."""
        at = self.currentIndex().column()
        return self.columns[at].group if 0 <= at < len(self.columns) else ""

    @property
    def folded(self) -> frozenset[str]:
        """Groups that are one column."""
        return self._model.folded

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter or Space on a verdict cycles it."""
        index = self.currentIndex()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.key() in _ENTER and index.isValid() and self._model.is_verdict(index.row()):
            self._activate(index)
        else:
            super().keyPressEvent(event)

    def copy(self) -> None:
        """Copy the selected cells, as a spreadsheet does."""
        lines: dict[int, list[str]] = {}
        for index in sorted(self.selectedIndexes(), key=lambda one: (one.row(), one.column())):
            lines.setdefault(index.row(), []).append(str(index.data() or ""))
        QApplication.clipboard().setText(spreadsheet_text(lines.values(), separator="\t").rstrip("\n"))

    def fill_down(self) -> None:
        """Give the selected cells of each column the text of its topmost one; of one cell: those below it too."""
        chosen = [(one.row(), one.column()) for one in self.selectedIndexes() if one.row() < len(self._model.rows)]
        if len(chosen) == 1:
            chosen += [(row, chosen[0][1]) for row in range(chosen[0][0] + 1, len(self._model.rows))]
        rows = self._model.rows
        for place in {at for _, at in chosen}:
            column, below = self.columns[place], [row for row, at in chosen if at == place]
            rows = with_cells(rows, [(row, column) for row in below], cell_text(rows[min(below)], column))
        if rows != self._model.rows:
            self.rows_edited.emit(rows)

    def _activate(self, index: AnyIndex) -> None:
        column = self._model.columns[index.column()]
        if self._model.is_verdict(index.row()) and column.kind is ColumnKind.DIM:
            self.verdict_clicked.emit(column.name)


_PADDING = 6


class GroupHeader(QHeaderView):
    """Two lines; a click on a group folds it into one column."""

    folded = Signal(str)
    """Name of the group that was clicked."""

    def __init__(self, model: ShapesModel, theme: Theme, parent: QTableView) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, minimumSectionSize=72, highlightSections=False)
        self._model = model
        self._theme = theme
        self.kinds: Mapping[str, str] = {}
        """Group -> what it is passed as, where the name does not say it."""
        self.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

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
