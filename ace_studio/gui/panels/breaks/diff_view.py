"""A unified diff to read: added and removed lines in colour, each with its sign."""

from PySide6.QtGui import QColor, QFontMetricsF, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit

from ace_studio.gui.style import Colours, Theme, monospace, tr

MAX_LINES_SHOWN = 16
"""A longer diff scrolls."""


class _DiffColours(QSyntaxHighlighter):
    def __init__(self, document: QTextDocument, colours: Colours) -> None:
        super().__init__(document)
        self.colours = colours

    def highlightBlock(self, text: str) -> None:  # noqa: N802 - Qt's name
        form = QTextCharFormat()
        if text.startswith(("---", "+++", "@@")):
            form.setForeground(QColor(self.colours.text_dim))
        elif text.startswith("+"):
            form.setForeground(QColor(self.colours.good))
            form.setBackground(QColor(self.colours.good_fill))
        elif text.startswith("-"):
            form.setForeground(QColor(self.colours.bad))
            form.setBackground(QColor(self.colours.bad_fill))
        else:
            return
        self.setFormat(0, len(text), form)


class DiffView(QPlainTextEdit):
    """Read-only; as high as its text, up to a limit."""

    def __init__(self, theme: Theme, patch: str) -> None:
        super().__init__(patch.rstrip("\n"), readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(monospace())
        self.setAccessibleName(tr("Change of the source"))
        self._diff = _DiffColours(self.document(), theme.colours)
        lines = min(MAX_LINES_SHOWN, self.blockCount())
        self.setFixedHeight(round(QFontMetricsF(self.font()).lineSpacing() * (lines + 1)) + 18)
