"""The search field with its count, and buttons for the next and the previous match."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.sizes import SYMBOL_PX
from ace_studio.gui.widgets.small import FilterField

HELP = (
    "Words are searched in name, operator, module, shape, type and device.\n"
    "op:conv   name:add   module:layer1   shape:1x64   dtype:float16   device:cuda   /regular.*expression$/\n"
    "Enter: next, Shift+Enter: previous, Esc: back to the graph"
)


class SearchBar(QWidget):
    """Takes the query and shows the count; the owner searches."""

    query_changed = Signal(str)
    next_wanted = Signal()
    previous_wanted = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        """Start empty."""
        super().__init__(parent)
        self.field = FilterField("Search ops", "Search ops")
        self.field.setToolTip(HELP)
        self.field.setMinimumWidth(64)
        self.count = QLabel(self)
        self.previous_button = self._button("‹", "Previous match", self.previous_wanted)  # noqa: RUF001 - an arrow
        self.next_button = self._button("›", "Next match", self.next_wanted)  # noqa: RUF001 - an arrow
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for widget in (self.field, self.count, self.previous_button, self.next_button):
            row.addWidget(widget)
        self.field.textChanged.connect(self.query_changed)
        self.show_count(0, 0)

    def _button(self, text: str, name: str, signal: object) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setAutoRaise(True)
        button.setToolTip(name)
        button.setAccessibleName(name)
        button.clicked.connect(signal)
        return button

    def show_count(self, at: int, total: int, *, problem: str = "") -> None:
        """Show the match number and the count, or why the query is invalid."""
        if problem:
            text = problem
        elif total:
            text = f"{at:,} of {total:,}" if at else f"{total:,} found"
        else:
            text = "none found" if self.field.text().strip() else ""
        self.count.setText(text)
        self.count.setVisible(bool(text))
        self.previous_button.setEnabled(total > 0)
        self.next_button.setEnabled(total > 0)

    def set_colours(self, colours: Colours) -> None:
        """Take the colours of a theme."""
        self.setStyleSheet(
            f"QLineEdit {{ background: {colours.window}; color: {colours.text};"
            f" border: 1px solid {colours.control}; border-radius: 5px; padding: 3px 6px }}"
            f"QLineEdit:focus {{ border-color: {colours.accent} }}"
            f"QLabel {{ color: {colours.text_dim} }}"
            f"QToolButton {{ color: {colours.text}; border: 1px solid transparent; border-radius: 4px;"
            f" padding: 1px 7px; font-size: {SYMBOL_PX}px }}"
            f"QToolButton:disabled {{ color: {colours.text_dim} }}"
            f"QToolButton:hover:enabled, QToolButton:focus {{ border-color: {colours.accent} }}"
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Enter goes to the next match, Esc leaves."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            (self.previous_wanted if back else self.next_wanted).emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)
