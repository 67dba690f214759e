"""A panel in a window of its own. Closing it puts the panel back where it was."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import QWidget

from ace_studio.gui.shell.panel_table import PanelSlot
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.tab_order import go_to_neighbour
from ace_studio.records.errors import one_line


class PanelWindow(QWidget):
    """Stays in front of the main window, and of no other program's: that is what a tool window is.

    The shortcuts of the main window work in it too, for the same reason.
    """

    closed = Signal(str)
    """Id of the panel, which is to be put back."""

    def __init__(self, slot: PanelSlot, parent: QWidget) -> None:
        flags = Qt.WindowType.Tool | Qt.WindowType.WindowMaximizeButtonHint | Qt.WindowType.WindowCloseButtonHint
        super().__init__(parent, flags)
        self.slot = slot
        self.setProperty("role", "surface")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setLayout(column(slot))
        slot.show()

    def show_title(self, of_what: str) -> None:
        """Put the panel and the model into the title."""
        self.setWindowTitle(f"{self.slot.row.title} – {one_line(of_what)}" if of_what else self.slot.row.title)

    def toggle_fill(self) -> None:
        """Take the whole screen, or give it back."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def event(self, event: QEvent) -> bool:
        """Keep Esc from the window's actions while it ends the full screen."""
        is_override = event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if is_override and self.isFullScreen() and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Esc ends the full screen."""
        if event.key() == Qt.Key.Key_Escape and self.isFullScreen():
            self.toggle_fill()
        else:
            super().keyPressEvent(event)

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: N802 - Qt's name
        """Tab goes through the window as one reads it."""
        return go_to_neighbour(self, forward=next)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Put the panel back."""
        super().closeEvent(event)
        self.closed.emit(self.slot.row.id)
