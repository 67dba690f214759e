"""The note over the graph while a large layout is made, with a button that stops it or asks for it again."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame

from ace_studio.gui.graph_view.surface import GraphSurface
from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import GAP, TIGHT, row
from ace_studio.gui.widgets.small import button, label

TOP = 10


class LayoutNote(QFrame):
    """Says how much is laid out. It is seen only while that goes on, or after it was stopped without a picture."""

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
