"""The code panel: the recipe as Python and as a command line, kept up to date."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QSplitter, QWidget

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.code_view import CodeView
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, button, column, label, row
from ace_studio.session.document import Document, Part
from ace_studio.session.generated_code.python_program import python_code
from ace_studio.session.generated_code.shell import command_line
from ace_studio.session.session import Session


class CodePanel(Panel):
    """Python above, the command line below; each can be copied."""

    title = "Code"
    shows = frozenset({Part.RECIPE, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build the two views."""
        super().__init__(session, theme)
        self.python, self.command = CodeView(theme), CodeView(theme)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setHandleWidth(1)
        for title, view in (("Python", self.python), ("Command", self.command)):
            view.setAccessibleName(f"The same as {title}")
            head = row(label(title, "dim", wrap=False), None, button("Copy", partial(_copy, view)))
            head.setContentsMargins(GAP, 4, GAP, 4)
            part = QWidget()
            part.setLayout(column(head, view, gap=0))
            split.addWidget(part)
        split.setSizes([300, 90])
        self.setLayout(column(split))
        self.setFocusProxy(self.python)

    def update_from(self, document: Document) -> None:
        """Rewrite both."""
        for view, text in ((self.python, python_code(document)), (self.command, command_line(document))):
            if view.toPlainText() != text.rstrip("\n"):
                view.show_code(text.rstrip("\n"))


def _copy(view: CodeView) -> None:
    QApplication.clipboard().setText(view.toPlainText() + "\n")
