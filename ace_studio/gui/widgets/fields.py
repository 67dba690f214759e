"""Fields to choose and to count in: the wheel scrolls what is around them and never changes a value."""

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence, QShowEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QDoubleSpinBox, QLabel, QLineEdit, QSizePolicy, QSpinBox, QWidget

_STAYS = (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)
"""Why a field loses the keyboard for a while only: what is typed is not in use yet."""


class _WheelScrolls:
    """Leaves the wheel to the scroll area around a field.

    Not even a focused field takes it: who chose a value and then scrolls the page would change the value.
    """

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        event.ignore()


class ComboBox(_WheelScrolls, QComboBox):
    """A combo box. On Linux screen readers name it by the label whose buddy it is, so it brings one along."""

    def __init__(
        self,
        name: str = "",
        options: Iterable[tuple[str, str]] = (),
        *,
        chosen: Callable[[], object] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """Offer the options, each a text and a value; ``chosen`` is called when the user chose one.

        ``name`` is for screen readers.
        """
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        for text, value in options:
            self.addItem(text, value)
        if chosen is not None:
            self.activated.connect(lambda _: chosen())

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Put a label that nobody sees beside it, unless one that is seen is there."""
        super().showEvent(event)
        parent = self.parentWidget()
        siblings = parent.findChildren(QLabel, options=Qt.FindChildOption.FindDirectChildrenOnly) if parent else ()
        if parent and not any(label.buddy() is self for label in siblings):
            QLabel(self.accessibleName(), parent).setBuddy(self)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Where the width follows the entries: all of it. Qt's own is from before the entries changed."""
        follows = self.sizeAdjustPolicy() is QComboBox.SizeAdjustPolicy.AdjustToContents
        return self.sizeHint() if follows else super().minimumSizeHint()


class NameBox(ComboBox):
    """A name that is typed, or chosen from those that are offered."""

    def __init__(self, name: str, choose: Callable[[str], object]) -> None:
        super().__init__(name)
        self.line = QLineEdit()
        self.setLineEdit(self.line)
        self.line.setAccessibleName(name)  # to a screen reader, the line is what has the keyboard
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.activated.connect(lambda at: choose(str(self.itemData(at) or "")))
        self.line.editingFinished.connect(lambda: choose(self._typed()))

    def _typed(self) -> str:
        """Words typed by hand count as the name itself, unless they are those of an offered row."""
        text = self.currentText().strip()
        at = self.findText(text)
        return str(self.itemData(at) or "") if at >= 0 else text.removesuffix("()")


class _NumberBox(_WheelScrolls):
    """What the fields for numbers share; ``properties`` are those of Qt's field, by name."""

    def __init__(self: Any, low: float = 0, high: float = 99, **properties: Any) -> None:
        super().__init__(**properties)
        self.setRange(low, high)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.lineEdit().setTextMargins(5, 0, 0, 0)  # the stylesheet cannot keep the text off the border

    def setValue(self: Any, value: float) -> None:  # noqa: N802 - Qt's name
        """Show a number, but not over one that is being typed."""
        if not (self.hasFocus() and self.lineEdit().isModified()):
            super().setValue(value)  # type: ignore[misc] # Qt's class has it


class WholeBox(_NumberBox, QSpinBox):
    """A whole number."""


class DecimalBox(_NumberBox, QDoubleSpinBox):
    """A number with decimals, with the point or the comma of the language; the other one is read as it when typed."""

    def validate(self, text: str, place: int) -> tuple[QValidator.State, str, int]:
        """Read comma and point alike."""
        point = self.locale().decimalPoint()
        return super().validate(text.replace("." if point == "," else ",", point), place)


class FieldUndo(QObject):
    """Ctrl+Z in a field takes back what was typed and is not in use yet; without such text, it is the window's undo.

    Qt's fields keep the key for themselves even where they have nothing to take back.
    """

    def __init__(self, application: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        application.focusChanged.connect(self._follow)

    def _follow(self, old: QWidget | None, new: QWidget | None) -> None:
        if old is not None and _line_of(old) is not None:
            old.removeEventFilter(self)
        if new is not None and _line_of(new) is not None:
            new.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Keep the keys of undo and redo from a field that cannot use them."""
        line = _line_of(watched) if isinstance(event, QKeyEvent | QFocusEvent) else None
        if line is None:
            return False
        is_left = isinstance(event, QFocusEvent) and event.lostFocus() and event.reason() not in _STAYS
        if is_left or (isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)):
            line.setModified(False)  # what was typed is in use now
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.matches(QKeySequence.StandardKey.Undo):
                return not (line.isModified() and line.isUndoAvailable())
            if event.matches(QKeySequence.StandardKey.Redo):
                return not line.isRedoAvailable()
        return False


def _line_of(widget: QObject) -> QLineEdit | None:
    """The line that a field is typed into; None if it has none."""
    if isinstance(widget, QLineEdit):
        return widget
    return widget.lineEdit() if isinstance(widget, QComboBox | QSpinBox | QDoubleSpinBox) else None
