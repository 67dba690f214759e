"""What stands above and over the graph: the breadcrumbs, the search with its count, and a note about the layout."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from ace_studio.gui.graph_view.search import SearchField
from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.layouts import GAP, SYMBOL_PX, TIGHT, row
from ace_studio.gui.widgets.small import button, label, show_words, tip_text, tool_button

MAX_CRUMBS = 6
TOP = 10
"""Pixels between the upper edge of the graph and the note over it."""


class Breadcrumbs(QWidget):
    """Names from the model to the current node; a click asks for that block."""

    block_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, accessibleName=tr("Position in the model"))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addStretch(1)
        self._shown: tuple[tuple[int, str], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    @property
    def names(self) -> tuple[str, ...]:
        """What is shown, outermost first."""
        return tuple(name for _, name in self._shown)

    def show_chain(self, chain: tuple[tuple[int, str], ...]) -> None:
        """Show nodes with their names, outermost first; a long chain loses its middle."""
        if len(chain) > MAX_CRUMBS:
            chain = (*chain[:2], (-1, "…"), *chain[3 - MAX_CRUMBS :])
        if chain == self._shown:
            return
        self._shown = chain
        while self._row.count() > 1:
            item = self._row.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for at, (node, name) in enumerate(chain):
            if at:
                self._row.insertWidget(self._row.count() - 1, QLabel("›", self))  # noqa: RUF001 - an arrow
            self._row.insertWidget(self._row.count() - 1, self._crumb(node, name))

    def _crumb(self, node: int, name: str) -> QWidget:
        if node < 0:
            return label(name, wrap=False)
        button = QToolButton(self, autoRaise=True)
        button.setText(name if len(name) <= 28 else name[:27] + "…")
        button.setToolTip(tip_text(tr("Show {name}", name=name)))
        button.setAccessibleName(tr("Show {name}", name=name))
        button.clicked.connect(lambda: self.block_wanted.emit(node))
        return button

    def set_colours(self, colours: Colours) -> None:
        """Take the colours of a theme."""
        self.setStyleSheet(
            f"QLabel {{ color: {colours.text_dim} }}"
            f"QToolButton {{ color: {colours.text}; border: 1px solid transparent; border-radius: 4px;"
            " padding: 2px 5px }"
            f"QToolButton:hover, QToolButton:focus {{ border-color: {colours.accent} }}"
        )


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


class LayoutNote(QFrame):
    """Says how much of a large graph is laid out, and stops that or asks for it again.

    It is seen only while that goes on, or after it was stopped without a picture.
    """

    def __init__(self, surface: GraphSurface) -> None:
        super().__init__(surface)
        self._surface = surface
        self.setProperty("bar", "info")
        self.words = label("", wrap=False)
        self.button = button(tr("Stop"), self._act)
        self.setLayout(row(self.words, self.button, margin=(GAP, TIGHT, GAP, TIGHT)))
        surface.layout_changed.connect(self.show_state)
        self.hide()

    def show_state(self) -> None:
        """Follow the surface."""
        surface = self._surface
        is_stopped = surface.stopped is not None
        self.words.setText(surface.layout_words)
        self.button.setText(tr("Lay it out") if is_stopped else tr("Stop"))
        self.button.setToolTip("" if is_stopped else tr("Stop (Esc)"))
        self.setVisible(bool(surface.layout_words))
        self.place()

    def place(self) -> None:
        """Move to the middle of an empty graph, and to its upper edge otherwise."""
        self.adjustSize()
        surface = self._surface
        top = TOP if surface.picture is not None else (surface.height() - self.height()) // 2
        self.move((surface.width() - self.width()) // 2, top)

    def handles(self, event: QKeyEvent) -> bool:
        """Esc in the graph stops the layout: whether the key was used for that."""
        is_used = event.key() == Qt.Key.Key_Escape and bool(self._surface.placing)
        if is_used and event.type() is QKeyEvent.Type.KeyPress:
            self._surface.stop_layout()
        return is_used

    def _act(self) -> None:
        surface = self._surface
        if surface.stopped is not None:
            surface.stopped()
        else:
            surface.stop_layout()
        surface.setFocus()
