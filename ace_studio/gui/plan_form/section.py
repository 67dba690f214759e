"""A heading that folds what is below it, and says in a few words what is chosen there while it is folded."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from ace_studio.gui.widgets import ElidedLabel, column, row
from ace_studio.records.errors import AceError
from ace_studio.session.session import Session


class Section(QWidget):
    """A part of a form. Whether it is open is remembered between starts."""

    def __init__(self, session: Session, name: str, content: QWidget, *, is_open: bool = True) -> None:
        """Put the content below a heading.

        Args:
            session: Where to remember it.
            name: The heading, also the key under which it is remembered.
            content: What folds.
            is_open: At first.
        """
        super().__init__()
        self._session, self._name, self.content = session, name, content
        kept = session.settings.recall(f"section-{name}")
        self.head = QToolButton()
        self.head.setCheckable(True)
        self.head.setAutoRaise(True)
        self.head.setProperty("role", "fold")
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.head.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._words = ""
        self._summary = ElidedLabel()
        self._summary.setProperty("role", "dim")
        line = row(self.head, self._summary, gap=6)
        line.setStretch(1, 1)
        self.setLayout(column(line, content, gap=6))
        self.head.setChecked(kept if isinstance(kept, bool) else is_open)
        self.head.toggled.connect(self._toggled)
        self._show()

    def say(self, summary: str) -> None:
        """What is chosen inside, shown while it is folded."""
        self._words = summary
        self._summary.setText("" if self.head.isChecked() else summary)

    def _toggled(self, is_open: bool) -> None:
        self._show()
        try:
            self._session.settings.remember(f"section-{self._name}", is_open)
        except AceError:
            return  # a fold is not worth a message

    def _show(self) -> None:
        is_open = self.head.isChecked()
        self.head.setText(f"{'▾' if is_open else '▸'}  {self._name}")
        self.head.setAccessibleName(f"{self._name}, {'open' if is_open else 'folded'}")
        self.content.setVisible(is_open)
        self._summary.setText("" if is_open else self._words)
