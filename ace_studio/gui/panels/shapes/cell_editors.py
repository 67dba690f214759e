"""Paints the cells of the shape table, and makes the fields in which they are edited."""

from PySide6.QtCore import QAbstractItemModel, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QCompleter,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
    QWidget,
)

from ace_studio.gui.panels.shapes.rows import INPUT_DTYPES, VALUE_SOURCES, ColumnKind
from ace_studio.gui.panels.shapes.table_model import CHIP, ShapesModel
from ace_studio.gui.panels.shapes.verdicts import Chip
from ace_studio.gui.style import Colours, Theme, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import set_role
from ace_studio.gui.widgets.table_model import AnyIndex

_LIST_PADDING = 30
_EDITOR_WIDTH = 190


class CellDelegate(QStyledItemDelegate):
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
        """Room for the round ends of a chip."""
        size = super().sizeHint(option, index)
        return QSize(size.width() + 22, size.height() + 6)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: AnyIndex) -> QWidget:  # noqa: N802 - Qt's name
        """A list for types and sources of values, a field that says what is wrong for sizes."""
        del option
        model = index.model()
        kind = model.columns[index.column()].kind if isinstance(model, ShapesModel) else ColumnKind.DIM
        if kind is ColumnKind.DIM:
            line = QLineEdit(parent, alignment=Qt.AlignmentFlag.AlignCenter)
            line.setAccessibleName(tr("Size"))
            line.textChanged.connect(lambda text: self._judge(line, index, text))
            return line
        combo = ComboBox(parent=parent)
        is_type = kind is ColumnKind.DTYPE
        combo.setAccessibleName(tr("Element type") if is_type else tr("Where the values come from"))
        line = QLineEdit()
        offers = model.offers.get(model.columns[index.column()].input, ()) if isinstance(model, ShapesModel) else ()
        for name, tip in [(one, "") for one in INPUT_DTYPES] if is_type else (*offers, *VALUE_SOURCES):
            combo.addItem(name)
            combo.setItemData(combo.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        combo.activated.connect(lambda at: self._finish(combo, is_template=at >= len(offers)))
        if not is_type:
            combo.setLineEdit(line)  # parameters are typed, and the path of a file
            combo.setCompleter(QCompleter(combo))  # its own would finish 'random 0..5' as 'random 0..9'
            combo.setInsertPolicy(ComboBox.InsertPolicy.NoInsert)
            combo.view().setMinimumWidth(combo.view().sizeHintForColumn(0) + _LIST_PADDING)
            line.textChanged.connect(lambda text: self._judge(line, index, text))
        return combo

    def _finish(self, combo: ComboBox, *, is_template: bool) -> None:
        word, _, parameters = combo.currentText().partition(" ")
        line = combo.lineEdit()
        if is_template and parameters and line is not None:
            line.setSelection(len(word) + 1, len(parameters))
            return
        # Its line, losing the focus, would choose once more.
        combo.blockSignals(True)
        self.commitData.emit(combo)
        self.closeEditor.emit(combo)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Room to type parameters, also in a narrow column."""
        super().updateEditorGeometry(editor, option, index)
        if isinstance(editor, ComboBox) and editor.isEditable() and editor.width() < _EDITOR_WIDTH:
            room = option.widget.viewport().width() if isinstance(option.widget, QTableView) else _EDITOR_WIDTH
            left = min(editor.x(), max(0, room - _EDITOR_WIDTH))
            editor.setGeometry(left, editor.y(), _EDITOR_WIDTH, editor.height())

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
        fault = model.fault_of_text(index, text) if isinstance(model, ShapesModel) and index.isValid() else ""
        set_role(line, "bad" if fault else "")
        line.setToolTip(fault)
        if isinstance(combo := line.parent(), ComboBox):
            set_role(combo, "bad" if fault else "")
        if fault:
            QToolTip.showText(line.mapToGlobal(line.rect().bottomLeft()), fault, line)
        else:
            QToolTip.hideText()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        """Paint a verdict as a chip, everything else as usual."""
        chip = index.data(CHIP)
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
