"""The search field with its count, and buttons for the next and the previous match."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QWidget

from ace_studio.gui.graph_view.search import SearchField
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.layouts import SYMBOL_PX, TIGHT, row
from ace_studio.gui.widgets.small import show_words, tool_button


class SearchBar(QWidget):
    """Takes the query and shows the count; the owner searches."""

    query_changed = Signal(str)
    next_wanted = Signal()
    previous_wanted = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = SearchField(tr("Search ops"), tr("Search ops"))
        keys = tr("Enter: next, Shift+Enter: previous, Esc: back to the graph")
        self.field.setToolTip(f"{self.field.toolTip()}\n{keys}")
        self.field.setMinimumWidth(64)
        self.count = QLabel(self)
        self.previous_button = tool_button(tr("Previous match"), self.previous_wanted.emit, text="‹")  # noqa: RUF001
        self.next_button = tool_button(tr("Next match"), self.next_wanted.emit, text="›")  # noqa: RUF001 - an arrow
        self.setLayout(row(self.field, self.count, self.previous_button, self.next_button, gap=TIGHT))
        self.field.textChanged.connect(self.query_changed)
        self.show_count(0, 0)

    def show_count(self, at: int, total: int, *, problem: str = "") -> None:
        """Show the match number and the count, or why the query is invalid."""
        if problem:
            text = problem
        elif total:
            text = tr("{at:,} of {total:,}", at=at, total=total) if at else tr("{total:,} found", total=total)
        else:
            text = tr("none found") if self.field.text().strip() else ""
        show_words(self.count, text)
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
