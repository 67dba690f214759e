"""The widget of the shape table: example rows to edit, then the verdicts and the verified sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QAbstractItemModel, QAbstractTableModel, QModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QKeyEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
    QWidget,
)

from ace_studio.gui.panels.shapes.faults import size_faults
from ace_studio.gui.panels.shapes.rows import (
    INPUT_DTYPES,
    VALUE_SOURCES,
    ColumnKind,
    Row,
    ShapeColumn,
    cell_fault,
    cell_text,
    shape_columns,
    with_cells,
)
from ace_studio.gui.panels.shapes.verdicts import Chip, chip_of, find_dim, sizes_text
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import set_role
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.records.tensors import DimChoice, InputFinding

_NO_INDEX = QModelIndex()
_CHIP = int(Qt.ItemDataRole.UserRole)
_ENTER = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space})


class _Model(QAbstractTableModel):
    """Example rows, one row as it was traced if there are none, a row of verdicts and a row of verified sizes."""

    edited = Signal(tuple)

    def __init__(self, parent: ShapeTable) -> None:
        super().__init__(parent)
        self.columns: tuple[ShapeColumn, ...] = ()
        self.rows: tuple[Row, ...] = ()
        self.findings: tuple[InputFinding, ...] = ()
        self.chips: tuple[Chip | None, ...] = ()
        self.faults: tuple[Mapping[str, str], ...] = ()
        self.refused: Mapping[int, str] = {}
        self.alarm = QColor()

    def fill(self, rows: Sequence[Row], findings: Sequence[InputFinding], dims: Mapping[str, DimChoice]) -> None:
        columns = shape_columns(rows, findings)
        is_same_size = columns == self.columns and len(rows) == len(self.rows) and bool(findings) == bool(self.findings)
        if not is_same_size:
            self.beginResetModel()
        self.columns, self.rows, self.findings = columns, tuple(rows), tuple(findings)
        self.faults = tuple(size_faults(each, findings) for each in self.rows)
        self.chips = tuple(chip_of(column, rows, findings, dims=dims) for column in columns)
        if is_same_size:
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(columns) - 1))
            self.headerDataChanged.emit(Qt.Orientation.Vertical, 0, self.rowCount() - 1)
        else:
            self.endResetModel()

    @property
    def example_rows(self) -> int:
        return len(self.rows) if self.rows else 1

    def is_verdict(self, row: int) -> bool:
        return row == self.example_rows

    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        return 0 if parent.isValid() or not self.columns else self.example_rows + 2

    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:  # noqa: N802 - Qt's name
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = index.row(), self.columns[index.column()]
        chip = self.chips[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return self._text(row, column, chip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignCenter)
        if role == Qt.ItemDataRole.ToolTipRole and self.is_verdict(row) and chip:
            return f"{chip.tip}\nClick, or press Enter, to cycle auto, dynamic, static"
        if role == Qt.ItemDataRole.AccessibleTextRole and self.is_verdict(row) and chip:
            return f"{column.name}: {chip.text}"
        if role == _CHIP:
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

    def _text(self, row: int, column: ShapeColumn, chip: Chip | None) -> str:
        if self.is_verdict(row):
            return chip.text if chip else ""
        if row > self.example_rows:
            return sizes_text(find_dim(column, self.findings)) if column.kind is ColumnKind.DIM else ""
        if self.rows:
            return cell_text(self.rows[row], column)
        if column.kind is ColumnKind.DIM:
            found = find_dim(column, self.findings)
            return str(found.size) if found else ""
        return next((finding.dtype for finding in self.findings if finding.name == column.input), "")

    def headerData(  # noqa: N802 - Qt's name
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is Qt.Orientation.Vertical and self.row_fault(section):
            if role == Qt.ItemDataRole.ToolTipRole:
                return self.row_fault(section)
            if role == Qt.ItemDataRole.ForegroundRole:
                return QBrush(self.alarm)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if orientation is Qt.Orientation.Horizontal:
            return self.columns[section].title if section < len(self.columns) else None
        if self.is_verdict(section):
            return "verdict"
        if section > self.example_rows:
            return "verified at"
        mark = "✕ " if self.row_fault(section) else ""
        return f"{mark}example {section + 1}" if self.rows else "as traced"

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return flags | Qt.ItemFlag.ItemIsEditable if index.row() < len(self.rows) else flags

    def setData(self, index: AnyIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802 - Qt's name
        if role != Qt.ItemDataRole.EditRole or index.row() >= len(self.rows):
            return False
        if self.fault_of_text(index, str(value)):
            return False
        changed = with_cells(self.rows, self.cells_edited(index), str(value))
        if changed != self.rows:
            self.edited.emit(changed)
        return True

    def fault_of_text(self, index: AnyIndex, text: str) -> str:
        """Why a text is invalid in a cell; empty if it is not."""
        return cell_fault(self.rows[index.row()], self.columns[index.column()], text)

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


class _ChipDelegate(QStyledItemDelegate):
    """Paints verdicts as chips."""

    def __init__(self, theme: Theme, parent: QTableView) -> None:
        super().__init__(parent)
        self._theme = theme
        self.is_stale = False

    @property
    def colours(self) -> Colours:
        """The colours of the theme."""
        return self._theme.colours

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:  # noqa: N802 - Qt's name
        size = super().sizeHint(option, index)
        return QSize(size.width() + 22, size.height() + 6)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: AnyIndex) -> QWidget:  # noqa: N802 - Qt's name
        """A list for types and sources of values, a field that says what is wrong for sizes."""
        del option
        model = index.model()
        kind = model.columns[index.column()].kind if isinstance(model, _Model) else ColumnKind.DIM
        if kind is ColumnKind.DIM:
            line = QLineEdit(parent)
            line.setAlignment(Qt.AlignmentFlag.AlignCenter)
            line.setAccessibleName("Size")
            line.textChanged.connect(lambda text: self._judge(line, index, text))
            return line
        combo = ComboBox(parent)
        is_type = kind is ColumnKind.DTYPE
        combo.setAccessibleName("Element type" if is_type else "Where the values come from")
        # Values may come from a file too, whose path is typed.
        combo.setEditable(not is_type)
        for name, tip in [(one, "") for one in INPUT_DTYPES] if is_type else VALUE_SOURCES:
            combo.addItem(name)
            combo.setItemData(combo.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        combo.activated.connect(lambda _: self._finish(combo))
        return combo

    def _finish(self, combo: ComboBox) -> None:
        # Its line, losing the focus, would choose once more.
        combo.blockSignals(True)
        self.commitData.emit(combo)
        self.closeEditor.emit(combo)

    def setEditorData(self, editor: QWidget, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Start with what the cell says."""
        if isinstance(editor, ComboBox):
            editor.setCurrentText(str(index.data()))
        else:
            super().setEditorData(editor, index)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Hand over the text, if it is valid."""
        if isinstance(editor, ComboBox | QLineEdit):
            text = editor.currentText() if isinstance(editor, ComboBox) else editor.text()
            model.setData(model.index(index.row(), index.column()), text)

    def _judge(self, line: QLineEdit, index: AnyIndex, text: str) -> None:
        """Mark a text that the cell cannot take while it is typed, and say why."""
        model = index.model()
        fault = model.fault_of_text(index, text) if isinstance(model, _Model) and index.isValid() else ""
        set_role(line, "bad" if fault else "")
        line.setToolTip(fault)
        if fault:
            QToolTip.showText(line.mapToGlobal(line.rect().bottomLeft()), fault, line)
        else:
            QToolTip.hideText()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        chip = index.data(_CHIP)
        if not isinstance(chip, Chip):
            super().paint(painter, option, index)
            return
        colours = self._theme.colours
        fills = {
            "dynamic": colours.good_fill, "unknown": colours.warn_fill, "static": colours.raised,
            "held": colours.info_fill,
        }  # fmt: skip
        inks = {"dynamic": colours.good, "unknown": colours.warn, "static": colours.text, "held": colours.accent}
        has_focus = bool(option.state & QStyle.StateFlag.State_HasFocus)
        box = QRectF(option.rect).adjusted(4.5, 3.5, -4.5, -3.5)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(
            QColor(colours.accent if has_focus else inks.get(chip.mood, colours.border)), 1.5 if has_focus else 1
        )
        if chip.mood == "asked" or self.is_stale:
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(QColor(fills.get(chip.mood, colours.surface)))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setPen(QColor(inks.get(chip.mood, colours.text_dim)))
        text = option.fontMetrics.elidedText(chip.text, Qt.TextElideMode.ElideRight, int(box.width()) - 12)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        painter.restore()


class ShapeTable(QTableView):
    """Examples and verdicts."""

    rows_edited = Signal(tuple)
    """All rows, after one cell was edited."""
    verdict_clicked = Signal(str)
    """Name of a dimension (``x.0``) whose chip was clicked or chosen with Enter."""

    def __init__(self, theme: Theme) -> None:
        """Start empty."""
        super().__init__()
        self._model = _Model(self)
        self._chips = _ChipDelegate(theme, self)
        self.setModel(self._model)
        self.setItemDelegate(self._chips)
        self.setAccessibleName("Examples and verdicts")
        self.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setMinimumSectionSize(72)
        self.horizontalHeader().setHighlightSections(False)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 12)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._model.edited.connect(self.rows_edited)
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
    ) -> None:
        """Show examples and verdicts; ``refused``: index of a row -> why no graph accepts it."""
        self._chips.is_stale = is_stale
        self._model.refused = refused or {}
        self._model.alarm = QColor(self._chips.colours.bad)
        current = self.currentIndex()
        place = (current.row(), current.column())
        self._model.fill(rows, findings, dims)
        if place[0] >= 0 and not self.currentIndex().isValid():
            self.setCurrentIndex(self._model.index(*place))

    def fault_text(self, row: int, name: str) -> str:
        """Why the cell of a dimension is red; empty if it is not."""
        column = next((one for one in self.columns if one.name == name), None)
        return self._model.fault_of(row, column) if column is not None else ""

    def chip_text(self, name: str) -> str:
        """The text of a dimension's chip; empty if there is none."""
        found = (chip for column, chip in zip(self.columns, self._model.chips, strict=True) if column.name == name)
        chip = next(found, None)
        return chip.text if chip else ""

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
        QApplication.clipboard().setText("\n".join("\t".join(cells) for cells in lines.values()))

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
