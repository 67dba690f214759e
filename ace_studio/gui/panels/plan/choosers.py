"""Cells in which a precision is chosen from a list."""

from collections.abc import Callable, Mapping

from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ace_studio.gui.ops.precision_offers import Offer, grey_out
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.table_model import AnyIndex
from ace_studio.records.recipes.plan import Precision

AS_PLANNED = ""


class PrecisionCells(QStyledItemDelegate):
    """Edits a column with a combo box of precisions. F2 or a double-click opens it."""

    def __init__(
        self,
        parent: QWidget,
        *,
        name: str,
        offers: Callable[[AnyIndex], Mapping[str, Offer]],
        choose: Callable[[QModelIndex, Precision | None], object],
        can_clear: str = "",
    ) -> None:
        """Pass the choice to ``choose``; the view shows it after the document changed.

        Args:
            parent: The view.
            name: For screen readers.
            offers: What is possible now in a cell.
            choose: Gets the cell and the precision; None for the row that clears.
            can_clear: Words of a first row that takes the choice back; empty for no such row.
        """
        super().__init__(parent)
        self._name, self._offers, self._choose, self._can_clear = name, offers, choose, can_clear

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: AnyIndex) -> QWidget:  # noqa: N802 - Qt's name
        """A combo box that closes as soon as something is chosen."""
        del option
        combo = ComboBox(parent=parent)
        combo.setAccessibleName(self._name)
        if self._can_clear:
            combo.addItem(self._can_clear, AS_PLANNED)
        for each in Precision:
            combo.addItem(str(each), str(each))
        grey_out(combo, self._offers(index))
        combo.activated.connect(lambda _: self._finish(combo))
        return combo

    def _finish(self, combo: QComboBox) -> None:
        self.commitData.emit(combo)
        self.closeEditor.emit(combo)

    def setEditorData(self, editor: QWidget, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Start with the value of the cell."""
        if isinstance(editor, QComboBox):
            editor.setCurrentIndex(max(0, editor.findText(str(index.data()))))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: AnyIndex) -> None:  # noqa: N802 - Qt's name
        """Pass on the choice."""
        if isinstance(editor, QComboBox):
            value = str(editor.currentData())
            if editor.currentText() != str(index.data(Qt.ItemDataRole.DisplayRole)):
                place = model.index(index.row(), index.column(), index.parent())
                self._choose(place, Precision(value) if value else None)


class NoEditor(QStyledItemDelegate):
    """A column that cannot be edited in a view that can."""

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: AnyIndex) -> QWidget:  # noqa: N802 - Qt's name
        """Nothing."""
        del parent, option, index
        return None  # type: ignore[return-value] # Qt takes it: there is no editor
