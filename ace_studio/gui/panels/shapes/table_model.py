"""The contents of the shape table: example rows to edit, then verdicts, verified sizes, and sizes for targets."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QAbstractTableModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont
from PySide6.QtWidgets import QTableView

from ace_studio.gui.panels.shapes.rows import (
    ColumnKind,
    Row,
    ShapeColumn,
    cell_fault,
    cell_text,
    parse_shape,
    shape_columns,
    with_cells,
)
from ace_studio.gui.panels.shapes.verdicts import Chip, chip_of, find_dim, size_faults, sizes_text
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.records.recipes.rules import is_size_range
from ace_studio.records.tensors import DimChoice, InputFinding

_NO_INDEX = QModelIndex()
CHIP = int(Qt.ItemDataRole.UserRole)
"""Role of the chip of a verdict."""


class ShapesModel(QAbstractTableModel):
    """Example rows, one row as it was traced if there are none, a row of verdicts and a row of verified sizes.

    If targets want it, a last row has the sizes that they are built for.
    """

    edited = Signal(tuple)
    """All example rows."""
    sizes_edited = Signal(dict)
    """Dimension -> smallest, usual and largest size."""

    def __init__(self, parent: QTableView) -> None:
        super().__init__(parent)
        self.folded: frozenset[str] = frozenset()
        """Groups of inputs that are one column."""
        self.sizes: Mapping[str, tuple[int, ...]] | None = None
        """What targets are built for; None if none wants it."""
        self.offers: Mapping[str, Sequence[tuple[str, str]]] = {}
        """Input -> values that suit it, and why."""
        self.columns: tuple[ShapeColumn, ...] = ()
        self.rows: tuple[Row, ...] = ()
        self.findings: tuple[InputFinding, ...] = ()
        self.chips: tuple[Chip | None, ...] = ()
        self.faults: tuple[Mapping[str, str], ...] = ()
        self.refused: Mapping[int, str] = {}
        self.alarm = QColor()

    def fill(
        self,
        rows: Sequence[Row],
        findings: Sequence[InputFinding],
        dims: Mapping[str, DimChoice],
        sizes: Mapping[str, tuple[int, ...]] | None,
        *,
        columns: tuple[ShapeColumn, ...] | None = None,
    ) -> None:
        """Show other contents, in the columns that they need or in these."""
        columns = shape_columns(rows, findings, folded=self.folded) if columns is None else columns
        now = (columns, len(rows), bool(findings), sizes is None)
        is_same_size = now == (self.columns, len(self.rows), bool(self.findings), self.sizes is None)
        self.sizes = sizes
        if not is_same_size:
            self.beginResetModel()
        self.columns, self.rows, self.findings = columns, tuple(rows), tuple(findings)
        self.faults = tuple(size_faults(each, findings) for each in self.rows)
        known = {name for each in rows for name in each} | {finding.name for finding in findings}
        self.chips = tuple(
            chip_of(column, rows, findings, dims=dims) if column.input in known else None for column in columns
        )
        if is_same_size and not columns:
            return
        if is_same_size:
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(columns) - 1))
            self.headerDataChanged.emit(Qt.Orientation.Vertical, 0, self.rowCount() - 1)
        else:
            self.endResetModel()

    @property
    def example_rows(self) -> int:
        """Rows above the verdicts."""
        return len(self.rows) if self.rows else 1

    def is_verdict(self, row: int) -> bool:
        """Whether a row has the verdicts."""
        return row == self.example_rows

    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        """Examples, verdicts, verified sizes, and what targets are built for."""
        return 0 if parent.isValid() or not self.columns else self.example_rows + 2 + self._has_sizes

    @property
    def _has_sizes(self) -> bool:
        return self.sizes is not None

    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        """One per dimension, type and source of values; one per folded group."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Text, tooltip, colour and chip of a cell."""
        row, column = index.row(), self.columns[index.column()]
        chip = self.chips[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return self.text_of(row, column, chip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role == Qt.ItemDataRole.ToolTipRole and self.is_verdict(row) and chip:
            return tr("{tip}\nClick, or press Enter, to cycle auto, dynamic, static", tip=chip.tip)
        if role == Qt.ItemDataRole.ToolTipRole and row == self.example_rows + 2:
            return tr("Smallest, usual and largest size, such as 1 4 8; empty: as the examples say")
        if role == Qt.ItemDataRole.AccessibleTextRole and self.is_verdict(row) and chip:
            return f"{column.name}: {chip.text}"
        if role == CHIP:
            return chip if self.is_verdict(row) else None
        return self._fault_data(row, column, role)

    def fault_of(self, row: int, column: ShapeColumn) -> str:
        """Why a cell is red: the guard that its size violates, or why the row was refused."""
        if row >= len(self.rows):
            return ""
        return self.faults[row].get(column.name, "") or self.refused.get(row, "")

    def row_fault(self, row: int) -> str:
        """All faults of a row."""
        if row >= len(self.rows):
            return ""
        broken = [f"{name}: {why}" for name, why in self.faults[row].items()]
        return "\n".join([*broken, *([self.refused[row]] if row in self.refused else [])])

    def _fault_data(self, row: int, column: ShapeColumn, role: int) -> object:
        fault = self.fault_of(row, column)
        if not fault:
            return None
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(self.alarm)
        if role == Qt.ItemDataRole.FontRole:
            font = QFont()
            font.setBold(True)
            return font
        return fault if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole) else None

    def text_of(self, row: int, column: ShapeColumn, chip: Chip | None) -> str:
        """The text of a cell."""
        if self.is_verdict(row):
            return chip.text if chip else ""
        if row > self.example_rows and column.kind is not ColumnKind.DIM:
            return ""
        if row == self.example_rows + 2:
            chosen = (self.sizes or {}).get(column.name)
            return " · ".join(map(str, chosen)) if chosen else "auto" if self._is_free(column) else ""
        if row > self.example_rows:
            return sizes_text(find_dim(column, self.findings))
        if self.rows:
            return cell_text(self.rows[row], column)
        if column.kind is ColumnKind.DIM:
            found = find_dim(column, self.findings)
            return str(found.size) if found else ""
        return next((finding.dtype for finding in self.findings if finding.name == column.input), "")

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Title of a row, or of a column below its group."""
        if orientation is Qt.Orientation.Vertical and self.row_fault(section):
            if role == Qt.ItemDataRole.ToolTipRole:
                return self.row_fault(section)
            if role == Qt.ItemDataRole.ForegroundRole:
                return QBrush(self.alarm)
        if orientation is Qt.Orientation.Horizontal and section < len(self.columns):
            column = self.columns[section]
            is_full = role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole)
            return column.title if is_full else column.short_title if role == Qt.ItemDataRole.DisplayRole else None
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if self.is_verdict(section):
            return tr("verdict")
        if section > self.example_rows:
            return tr("verified at") if section == self.example_rows + 1 else tr("built for")
        mark = "✕ " if self.row_fault(section) else ""
        return f"{mark}{tr('example {number}', number=section + 1)}" if self.rows else tr("as traced")

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        """Examples can be edited, and what targets are built for."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        column = self.columns[index.column()]
        is_example = index.row() < len(self.rows) and column.kind is not ColumnKind.FOLDED
        is_size = index.row() == self.example_rows + 2 and self._is_free(column)
        return flags | Qt.ItemFlag.ItemIsEditable if is_example or is_size else flags

    def _is_free(self, column: ShapeColumn) -> bool:
        chip = self.chips[self.columns.index(column)]
        return chip is not None and chip.is_free

    def setData(self, index: AnyIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802 - Qt's name
        """Take a text, if it is valid."""
        if role != Qt.ItemDataRole.EditRole or self.fault_of_text(index, str(value)):
            return False
        if index.row() >= len(self.rows):
            name, chosen = self.columns[index.column()].name, tuple(parse_shape(str(value).replace("·", " ")) or ())
            others = {key: sizes for key, sizes in (self.sizes or {}).items() if key != name}
            self.sizes_edited.emit({**others, name: chosen} if chosen else others)
            return True
        changed = with_cells(self.rows, self.cells_edited(index), str(value))
        if changed != self.rows:
            self.edited.emit(changed)
        return True

    def fault_of_text(self, index: AnyIndex, text: str) -> str:
        """Why a text is invalid in a cell; empty if it is not."""
        if index.row() < len(self.rows):
            return cell_fault(self.rows[index.row()], self.columns[index.column()], text)
        is_fine = text.strip() in ("", "auto") or is_size_range(parse_shape(text.replace("·", " ")) or ())
        return "" if is_fine else tr("Write the smallest, the usual and the largest size, such as 1 4 8, or nothing")

    def cells_edited(self, index: AnyIndex) -> list[tuple[int, ShapeColumn]]:
        """Row and column of the cells that an edit of this one is about: with it, the selected ones of its kind."""
        table = self.parent()
        chosen = table.selectedIndexes() if isinstance(table, QTableView) else []
        kind = self.columns[index.column()].kind
        places = {(one.row(), one.column()) for one in chosen} | {(index.row(), index.column())}
        if not any(one.row() == index.row() and one.column() == index.column() for one in chosen):
            places = {(index.row(), index.column())}
        return [(row, self.columns[at]) for row, at in sorted(places)
                if row < len(self.rows) and self.columns[at].kind is kind]  # fmt: skip
