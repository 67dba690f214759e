"""The code panel: the recipe as Python and as a command line, kept up to date; of A and B what differs."""

from collections.abc import Callable
from difflib import unified_diff
from functools import partial
from itertools import chain, islice

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from ace_studio.gui.style import Theme, tr
from ace_studio.gui.widgets.code_view import CodeView
from ace_studio.gui.widgets.layouts import GAP, TIGHT, box, column, row, split
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import button, label
from ace_studio.session.document import Document, Part
from ace_studio.session.generated_code.python_program import command_line, python_code
from ace_studio.session.session import Session


class CodePanel(Panel):
    """Python above, the command line below; each can be copied."""

    title = "Code"
    shows = frozenset({Part.RECIPE, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.python, self.command = CodeView(theme), CodeView(theme)
        parts = []
        for title, view in (("Python", self.python), (tr("Command"), self.command)):
            view.setAccessibleName(tr("The same as {title}", title=title))
            head = row(
                label(title, "dim", wrap=False),
                None,
                button(tr("Copy"), partial(_copy, view)),
                margin=(GAP, TIGHT, GAP, TIGHT),
            )
            parts.append(box(column(head, view, gap=0)))
        self.setLayout(column(split(*parts, sizes=(300, 90), across=False, can_close=True)))
        self.setFocusProxy(self.python)

    def update_from(self, document: Document) -> None:
        """Rewrite both."""
        for view, write in ((self.python, python_code), (self.command, command_line)):
            text = write(document) if document.comparison is None else _difference(document, write)
            if view.toPlainText() != text.rstrip("\n"):
                view.show_code(text.rstrip("\n"))


def _difference(document: Document, write: Callable[[Document], str]) -> str:
    """Every line of A and of B: ``-`` begins one of A only, ``+`` one of B only. Of one side alone: its lines."""
    sides = document.comparison.sides if document.comparison is not None else ()
    texts = [
        write(replace(document, recipe=side.recipe, folder=side.folder or document.folder)).splitlines()
        for side in sides
        if side.recipe is not None
    ]
    if len(texts) < 2:
        return "\n".join(chain.from_iterable(texts))
    first, second = texts
    # With all lines as context there is one part; its three lines of head name files and numbers.
    found = unified_diff(first, second, n=len(first) + len(second), lineterm="")
    return "\n".join(islice(found, 3, None)) or "\n".join(f" {line}" for line in first)


def _copy(view: CodeView) -> None:
    QApplication.clipboard().setText(view.toPlainText() + "\n")
