"""The start page: drop a model, open one, or try the example."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QWidget

from ace_studio.gui.style import Colours, Theme, stroke_pixmap, tr
from ace_studio.gui.widgets.layouts import GAP, MARGIN, box, clear_layout, column, row
from ace_studio.gui.widgets.small import ElidedLabel, allow, button, label, set_property
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_WIDTH = 620
_STEPS = (
    tr("Open a PyTorch model: a .py file with a function that makes it, weights, or an exported program."),
    tr("Trace it to see the graph, the dynamic sizes, and the line of your code behind every op."),
    tr("Choose a precision, or a limit for the loss of accuracy. Run measures every target and picks the best."),
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
        start_tour: Callable[[], object],
        engine_card: QWidget,
    ) -> None:
        super().__init__(accessibleName=tr("Start"))
        self._session = session
        self._picture = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._drop = QFrame()
        self._drop.setProperty("role", "drop")
        headline = label(tr("Drop a model here"), "title")
        headline.setAlignment(Qt.AlignmentFlag.AlignCenter)
        kinds = label(tr(".py   .pt   .pth   .safetensors   .pt2   .onnx   or a recipe .toml"), "dim")
        kinds.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.open_button = button(tr("Open a model…"), open_dialog, role="primary")
        self.example_button = button(tr("Open the example"), open_example)
        buttons = row(None, self.open_button, self.example_button, None)
        self._drop.setLayout(column(self._picture, headline, kinds, buttons, margin=MARGIN * 2, gap=GAP))
        self._recent_title = label(tr("Recent"), "heading")
        self._recent_column = column(gap=0)
        self._recent = box(self._recent_column)
        steps = [row(_number(at), label(text, "dim"), gap=GAP, stretch=1) for at, text in enumerate(_STEPS, start=1)]
        self.tour_button = button(tr("Take the tour"), start_tour, role="link")
        how = column(label(tr("How it works"), "heading"), *steps, row(self.tour_button, None))
        content = box(column(engine_card, self._drop, self._recent_title, self._recent, how, gap=MARGIN))
        content.setMaximumWidth(_WIDTH)
        middle = row(None, content, None, margin=MARGIN)
        middle.setStretch(1, 100)
        page = box(column(None, middle, None))
        area = QScrollArea(widgetResizable=True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # Not filled, as a new widget is. To ask for the one that is there would make PySide look through all classes.
        area.setViewport(QWidget())
        area.setWidget(page)
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
        name = button(Path(path).name, lambda: self._session.files.open_path(path), role="link", tip=path)
        name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        where = ElidedLabel(str(Path(path).parent), mode=Qt.TextElideMode.ElideMiddle, role="dim")
        if not self._session.files.is_gone(path):
            return box(row(name, where, gap=GAP, stretch=1))
        allow(name, tr("It is no longer there"), path)
        where.setText(tr("no longer in {folder}", folder=str(Path(path).parent)))
        remove = button(tr("Remove"), lambda: self._session.files.forget_recent(path), role="link")
        remove.setAccessibleName(tr("Remove {name} from the recent files", name=Path(path).name))
        return box(row(name, where, remove, gap=GAP, stretch=1))

    def set_hot(self, is_hot: bool) -> None:
        """Highlight the drop area while a file is dragged over the window."""
        set_property(self._drop, "over", "true" if is_hot else "false")

    def _restyle(self, colours: Colours) -> None:
        self._picture.setPixmap(stroke_pixmap("drop", colours.accent, size=44, pixel_ratio=self.devicePixelRatioF()))


def _number(at: int) -> QLabel:
    made = label(str(at), "dim")
    made.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight)
    made.setFixedWidth(18)
    return made
