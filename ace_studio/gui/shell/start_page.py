"""The start page: drop a model, open one, or try the example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.icons import stroke_pixmap
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.small import GAP, MARGIN, ElidedLabel, button, clear_layout, column, label, row, scrolling
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_WIDTH = 620
_STEPS = (
    "Open a PyTorch model: a .py file with a function that makes it, weights, or an exported program.",
    "Trace it to see the graph, the dynamic sizes, and the line of your code behind every op.",
    "Choose a precision, or a limit for the loss of accuracy. Run measures every target and picks the best.",
)


class StartPage(QWidget):
    """What the window shows while nothing is open."""

    def __init__(
        self,
        session: Session,
        theme: Theme,
        *,
        open_dialog: Callable[[], object],
        open_example: Callable[[], object],
    ) -> None:
        """Build the page."""
        super().__init__()
        self.setAccessibleName("Start")
        self._session = session
        self._theme = theme
        self._picture = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._drop = QFrame()
        self._drop.setProperty("role", "drop")
        headline = label("Drop a model here", "title")
        headline.setAlignment(Qt.AlignmentFlag.AlignCenter)
        kinds = label(".py   .pt   .pth   .safetensors   .pt2   .onnx   or a recipe .toml", "dim")
        kinds.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.open_button = button("Open a model…", open_dialog, role="primary")
        self.example_button = button("Open the example", open_example)
        buttons = row(None, self.open_button, self.example_button, None)
        self._drop.setLayout(column(self._picture, headline, kinds, buttons, margin=22, gap=10))
        self._recent_title = label("Recent", "heading")
        self._recent = QWidget()
        self._recent_column = column(gap=0)
        self._recent.setLayout(self._recent_column)
        steps = [row(_number(at), label(text, "dim"), gap=10) for at, text in enumerate(_STEPS, start=1)]
        for line in steps:
            line.setStretch(1, 1)
        how = column(label("How it works", "heading"), *steps)
        content = QWidget()
        content.setMaximumWidth(_WIDTH)
        content.setLayout(column(self._drop, self._recent_title, self._recent, how, gap=14))
        page = QWidget()
        middle = row(None, content, None, margin=MARGIN)
        middle.setStretch(1, 100)
        page.setLayout(column(None, middle, None))
        area = scrolling(page)
        page.setProperty("role", "")
        area.viewport().setAutoFillBackground(False)
        self.setLayout(column(area))
        theme.changed.connect(self._restyle)
        self._restyle(theme.colours)

    def refresh(self, document: Document, parts: frozenset[Part]) -> None:
        """Show the recent files."""
        if Part.SETTINGS not in parts:
            return
        clear_layout(self._recent_column)
        for path in document.recent_files[:6]:
            self._recent_column.addWidget(self._recent_row(path))
        for part in (self._recent_title, self._recent):
            part.setVisible(bool(document.recent_files))

    def _recent_row(self, path: str) -> QWidget:
        line = QWidget()
        name = button(Path(path).name, lambda: self._session.files.open_path(path), role="link", tip=path)
        name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        where = ElidedLabel(str(Path(path).parent), mode=Qt.TextElideMode.ElideMiddle)
        where.setProperty("role", "dim")
        parts = row(name, where, gap=GAP)
        parts.setStretch(1, 1)
        line.setLayout(parts)
        return line

    def set_hot(self, is_hot: bool) -> None:
        """Highlight the drop area while a file is dragged over the window."""
        self._drop.setProperty("over", "true" if is_hot else "false")
        self._drop.style().unpolish(self._drop)
        self._drop.style().polish(self._drop)

    def _restyle(self, colours: Colours) -> None:
        self._picture.setPixmap(stroke_pixmap("drop", colours.accent, size=44, pixel_ratio=self.devicePixelRatioF()))


def _number(at: int) -> QLabel:
    made = label(str(at), "dim")
    made.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight)
    made.setFixedWidth(18)
    return made
