"""Small widgets that several panels are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QObject, QPoint, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ace_studio.gui.style.icons import stroke_pixmap
from ace_studio.gui.style.sizes import GAP, MARGIN


def label(text: str, role: str = "", *, wrap: bool = True) -> QLabel:
    """A plain-text label; ``role`` is one of the stylesheet's (dim, title, heading, good, warn, bad)."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(wrap)
    made.setIndent(0)
    made.setProperty("role", role)
    return made


def set_role(widget: QWidget, role: str) -> None:
    """Change the role of a widget, and apply the stylesheet again."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def button(text: str, action: Callable[[], object], *, role: str = "", tip: str = "") -> QPushButton:
    """A push button."""
    made = QPushButton(text)
    made.setProperty("role", role)
    made.setToolTip(tip)
    made.clicked.connect(lambda *_: action())
    return made


def column(*items: QWidget | QLayout | None, margin: int = 0, gap: int = GAP) -> QVBoxLayout:
    """Items below each other; None is a stretch."""
    layout = QVBoxLayout()
    _fill(layout, items, margin, gap)
    return layout


def row(*items: QWidget | QLayout | None, margin: int = 0, gap: int = GAP) -> QHBoxLayout:
    """Items beside each other; None is a stretch."""
    layout = QHBoxLayout()
    _fill(layout, items, margin, gap)
    return layout


def _fill(layout: QVBoxLayout | QHBoxLayout, items: Iterable[QWidget | QLayout | None], margin: int, gap: int) -> None:
    layout.setContentsMargins(margin, margin, margin, margin)
    layout.setSpacing(gap)
    for item in items:
        if item is None:
            layout.addStretch(1)
        elif isinstance(item, QWidget):
            layout.addWidget(item)
        else:
            layout.addLayout(item)


def fit_screen(window: QWidget, width: int, height: int) -> None:
    """Resize a window to this size, or to what its screen has room for beside its frame."""
    room = window.screen().availableSize()
    window.resize(min(width, room.width() - 16), min(height, room.height() - 48))


def clear_layout(layout: QLayout) -> None:
    """Remove all items and delete the widgets."""
    while (item := layout.takeAt(0)) is not None:
        old = item.widget()
        if old is not None:
            old.hide()
            old.deleteLater()


def rule() -> QFrame:
    """A hairline between groups."""
    line = QFrame()
    line.setProperty("role", "rule")
    line.setFixedHeight(1)
    return line


def scrolling(content: QWidget) -> QScrollArea:
    """Wrap a widget in a scroll area."""
    area = QScrollArea()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidgetResizable(True)
    content.setProperty("role", "surface")
    area.setWidget(content)
    return area


@contextmanager
def quiet(*widgets: QObject) -> Iterator[None]:
    """Block the signals of widgets, while the document is shown in them."""
    blockers = [QSignalBlocker(widget) for widget in widgets]
    try:
        yield
    finally:
        for blocker in blockers:
            blocker.unblock()


def fill_combo(combo: QComboBox, options: Sequence[tuple[str, str]], chosen: str) -> None:
    """Offer (text, value) pairs and choose a value without a signal. A value that is not offered is added."""
    offered = [*options] if any(value == chosen for _, value in options) else [*options, (chosen, chosen)]
    with quiet(combo):
        if [(combo.itemText(at), combo.itemData(at)) for at in range(combo.count())] != offered:
            combo.clear()
            for text, value in offered:
                combo.addItem(text, value)
        combo.setCurrentIndex(next(at for at, (_, value) in enumerate(offered) if value == chosen))


def pop_up(menu: QMenu, view: QAbstractScrollArea, place: QPoint) -> None:
    """Open a menu at a place of a view's contents, unless it is empty."""
    if not menu.isEmpty():
        menu.popup(view.viewport().mapToGlobal(place))


class FilterField(QLineEdit):
    """A field to type a filter into. `settled` follows when the typing pauses."""

    settled = Signal()

    def __init__(self, name: str, hint: str) -> None:
        """``name`` is for screen readers; ``hint`` shows while the field is empty."""
        super().__init__()
        self.setPlaceholderText(hint)
        self.setClearButtonEnabled(True)
        self.setAccessibleName(name)
        later = QTimer(self, singleShot=True, interval=80)
        later.timeout.connect(self.settled)
        self.textChanged.connect(lambda _: later.start())


class ElidedLabel(QLabel):
    """One line, elided if it does not fit; the tooltip has the whole text."""

    def __init__(self, text: str = "", *, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        """Show the text."""
        super().__init__(text)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Show another text."""
        super().setText(text)
        self.setToolTip(text)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Any width will do."""
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the part that fits."""
        del event
        painter = QPainter(self)
        box = self.contentsRect()
        text = self.fontMetrics().elidedText(self.text(), self._mode, box.width())
        self.style().drawItemText(
            painter, box, int(self.alignment()), self.palette(), self.isEnabled(), text, self.foregroundRole()
        )


class EmptyState(QWidget):
    """Shown in an empty panel: what is missing, and buttons to get it."""

    def __init__(self, icon: str) -> None:
        """Start without text."""
        super().__init__()
        self._icon = icon
        self._picture = QLabel()
        self._title = label("", "title")
        self._text = label("", "dim")
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(GAP)
        for part in (self._picture, self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        middle = QWidget()
        middle.setMaximumWidth(520)
        middle.setLayout(column(self._picture, self._title, self._text, self._buttons, gap=6))
        self._buttons.setContentsMargins(0, GAP, 0, 0)
        outer = row(None, middle, None, margin=MARGIN)
        outer.setStretch(1, 8)
        self.setLayout(column(None, outer, None))
        self._said: tuple[object, ...] = ()

    def say(self, title: str, text: str = "", *buttons: QPushButton) -> None:
        """Change the words and the buttons."""
        self._title.setText(title)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        clear_layout(self._buttons)
        self._buttons.addStretch(1)
        for each in buttons:
            self._buttons.addWidget(each)
        self._buttons.addStretch(1)

    def tint(self, colour: str) -> None:
        """Draw the icon in this colour."""
        self._picture.setPixmap(stroke_pixmap(self._icon, colour, size=40, pixel_ratio=self.devicePixelRatioF()))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the picture in a low panel."""
        super().resizeEvent(event)
        self._picture.setVisible(self.height() > 190)
