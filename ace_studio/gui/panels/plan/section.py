"""A heading that folds its content; while folded, it summarises the choices."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.layouts import CLOSE, column, row
from ace_studio.gui.widgets.small import ElidedLabel
from ace_studio.records.errors import AceError
from ace_studio.session.session import Session


class Section(QWidget):
    """A folding part of a form. It remembers between starts whether it is open."""

    opened = Signal()
    """Emitted after it was opened; its content exists now."""

    def __init__(self, session: Session, name: str, make: Callable[[], QWidget], *, is_open: bool = True) -> None:
        """Make the heading; the content follows by `fill`, or when it is first opened.

        Args:
            session: Where to remember it.
            name: The heading, also the key under which it is remembered.
            make: Makes what folds, when it is first opened.
            is_open: At first.
        """
        super().__init__()
        self._session, self._name, self._make = session, name, make
        self.content: QWidget | None = None
        kept = session.settings.recall(f"section-{name}")
        self.head = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.head.setCheckable(True)
        self.head.setProperty("role", "fold")
        self.head.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._words = ""
        self._summary = ElidedLabel(role="dim")
        self._column = column(row(self.head, self._summary, gap=CLOSE, stretch=1), gap=CLOSE)
        self.setLayout(self._column)
        self.head.setChecked(kept if isinstance(kept, bool) else is_open)
        self.head.toggled.connect(self._toggled)
        self._show_head()

    def say(self, summary: str) -> None:
        """Set the summary that shows while it is folded."""
        self._words = summary
        self._summary.setText("" if self.head.isChecked() else summary)

    def _toggled(self, is_open: bool) -> None:
        self.fill()
        if is_open:
            self.opened.emit()
        try:
            self._session.settings.remember(f"section-{self._name}", is_open)
        except AceError:
            return  # not worth a message

    def _show_head(self) -> None:
        is_open = self.head.isChecked()
        self.head.setText(f"{'▾' if is_open else '▸'}  {tr(self._name)}")
        self.head.setAccessibleName(f"{tr(self._name)}, {tr('open') if is_open else tr('folded')}")
        self._summary.setText("" if is_open else self._words)

    def fill(self) -> None:
        """Show the content if it is open; it is made if that was not done yet."""
        self._show_head()
        is_open = self.head.isChecked()
        if is_open and self.content is None:
            self.content = self._make()
            self._column.addWidget(self.content)
        if self.content is not None:
            self.content.setVisible(is_open)
