"""The breadcrumbs: the blocks around the current node; a click goes to one."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.small import label, tip_text

MAX_CRUMBS = 6


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
