"""Small widgets that several panels are made of."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

from PySide6 import QtWidgets
from PySide6.QtCore import QObject, QPoint, QSignalBlocker, QSize, QTimer, Signal
from PySide6.QtGui import QKeySequence, QPainter, QPaintEvent, QResizeEvent, QShortcut, Qt

from ace_studio.gui.style import Colours, Theme, monospace, stroke_pixmap
from ace_studio.gui.widgets.layouts import CLOSE, GAP, MARGIN, TIGHT, box, clear_layout, column, row
from ace_studio.records.errors import one_line, visible


def label(text: str, role: str = "", *, wrap: bool = True, strong: bool = False) -> QtWidgets.QLabel:
    """A plain-text label; ``role`` is one of the stylesheet's (dim, title, heading, good, warn, bad)."""
    made = QtWidgets.QLabel(visible(text), textFormat=Qt.TextFormat.PlainText, wordWrap=wrap, indent=0)
    made.setProperty("role", role)
    if strong:
        made.setProperty("weight", "strong")
    return made


def show_words(shown: QtWidgets.QLabel, text: str, role: str | None = None) -> None:
    """Show a text in a label, in another role if one is given; without a text the label is hidden."""
    shown.setText(text)
    shown.setVisible(bool(text))
    if role is not None:
        set_role(shown, role)


def named(text: str, *fields: QtWidgets.QWidget) -> QtWidgets.QWidget:
    """Fields in a line below the name of the first."""
    name = label(text, "heading")
    name.setBuddy(fields[0])
    return box(column(name, row(*fields, stretch=0), gap=TIGHT, margin=0))


def tip_text(text: str) -> str:
    """A tooltip that quotes what comes from outside: Qt takes a tooltip that looks like HTML for HTML."""
    shown = visible(text)
    return f"<span style='white-space:pre-wrap'>{escape(shown)}</span>" if Qt.mightBeRichText(shown) else shown


def set_role(widget: QtWidgets.QWidget, role: str) -> None:
    """Change the role of a widget, and apply the stylesheet again."""
    set_property(widget, "role", role)


def set_property(widget: QtWidgets.QWidget, name: str, value: str) -> None:
    """Change a property that the stylesheet asks for, and apply it again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def button(text: str, action: Callable[[], object], *, role: str = "", tip: str = "") -> QtWidgets.QPushButton:
    """A push button."""
    made = QtWidgets.QPushButton(visible(text))
    made.setProperty("role", role)
    made.setToolTip(tip_text(tip))
    made.clicked.connect(lambda *_: action())
    return made


def allow(made: QtWidgets.QAbstractButton, why_not: str, tip: str) -> None:
    """Enable a button, with its tip; or disable it, with the reason in place of that.

    A button that is disabled while it has the keyboard, as by the job that it starts, gets it back unless another
    widget has it by then: Qt would give it to the next one, which may do something else at the next key.
    """
    if why_not and made.hasFocus():
        made.clearFocus()
        made.setProperty("waits", True)
    made.setEnabled(not why_not)
    if not why_not and made.property("waits"):
        made.setProperty("waits", False)
        if made.window().focusWidget() is None:
            made.setFocus()
    made.setToolTip(tip_text(why_not or tip))


def fit_screen(window: QtWidgets.QWidget, width: int, height: int) -> None:
    """Resize a window to this size, or to what its screen has room for beside its frame."""
    room = window.screen().availableSize()
    window.resize(min(width, room.width() - 16), min(height, room.height() - 48))


def rule() -> QtWidgets.QFrame:
    """A hairline between groups."""
    line = QtWidgets.QFrame()
    line.setProperty("role", "rule")
    line.setFixedHeight(1)
    return line


@contextmanager
def quiet(*widgets: QObject) -> Iterator[None]:
    """Block the signals of widgets, while the document is shown in them."""
    blockers = [QSignalBlocker(widget) for widget in widgets]
    try:
        yield
    finally:
        for blocker in blockers:
            blocker.unblock()


def fill_combo(combo: QtWidgets.QComboBox, options: Sequence[tuple[str, str]], chosen: str) -> None:
    """Offer (text, value) pairs and choose a value without a signal. A value that is not offered is added."""
    offered = [*options] if any(value == chosen for _, value in options) else [*options, (chosen, chosen)]
    with quiet(combo):
        if [(combo.itemText(at), combo.itemData(at)) for at in range(combo.count())] != offered:
            combo.clear()
            for text, value in offered:
                combo.addItem(text, value)
        combo.setCurrentIndex(next(at for at, (_, value) in enumerate(offered) if value == chosen))


def on_key(
    widget: QtWidgets.QWidget, keys: QKeySequence.StandardKey | str, act: Callable[[], object], *, inside: bool = False
) -> None:
    """Let a key do something while a widget has the keyboard, or with ``inside`` a widget in it."""
    where = Qt.ShortcutContext.WidgetWithChildrenShortcut if inside else Qt.ShortcutContext.WidgetShortcut
    QShortcut(QKeySequence(keys), widget, context=where).activated.connect(act)


def offer_menu(view: QtWidgets.QAbstractScrollArea, make: Callable[[QPoint], QtWidgets.QMenu | None]) -> None:
    """Open a context menu that is made for a place of a view's contents, unless it is empty."""

    def pop_up(place: QPoint) -> None:
        menu = make(place)
        if menu is not None and not menu.isEmpty():
            menu.popup(view.viewport().mapToGlobal(place))

    view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    view.customContextMenuRequested.connect(pop_up)


def short_lived_menu(parent: QtWidgets.QWidget) -> QtWidgets.QMenu:
    """An empty menu that deletes itself when it is closed."""
    menu = QtWidgets.QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return menu


def selectable(text: QtWidgets.QLabel) -> QtWidgets.QLabel:
    """A label whose text can be selected with the mouse."""
    text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return text


def plain_text(name: str, text: str = "") -> QtWidgets.QPlainTextEdit:
    """Read-only text in the font of code; ``name`` is for screen readers."""
    made = QtWidgets.QPlainTextEdit(text, readOnly=True)
    made.setFont(monospace())
    made.setAccessibleName(name)
    return made


def text_field(name: str, hint: str) -> QtWidgets.QLineEdit:
    """A field for one line; ``name`` is for screen readers, ``hint`` shows while it is empty, and whole in a tip."""
    made = QtWidgets.QLineEdit()
    made.setPlaceholderText(hint)
    made.setToolTip(hint)
    made.setAccessibleName(name)
    return made


def tool_button(name: str, action: Callable[[], object], *, tip: str = "", text: str = "") -> QtWidgets.QToolButton:
    """A flat button for an icon or a sign; ``name`` is for screen readers, and the tooltip without a ``tip``."""
    made = QtWidgets.QToolButton(autoRaise=True)
    made.setText(text)
    made.setAccessibleName(name)
    made.setToolTip(tip or name)
    made.clicked.connect(lambda *_: action())
    return made


class ProgressBar(QtWidgets.QProgressBar):
    """The progress of a job, without words."""

    def __init__(self, name: str) -> None:
        super().__init__(textVisible=False)
        self.setAccessibleName(name)

    def show_fraction(self, fraction: float | None) -> None:
        """Show a fraction; None is a job that does not say how far it is."""
        self.setRange(0, 0 if fraction is None else 1000)
        if fraction is not None:
            self.setValue(round(1000 * fraction))


class FilterField(QtWidgets.QLineEdit):
    """A field to type a filter into, made like `text_field`. `settled` follows when the typing pauses."""

    settled = Signal()

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(placeholderText=hint, clearButtonEnabled=True)
        self.setAccessibleName(name)
        later = QTimer(self, singleShot=True, interval=80)
        later.timeout.connect(self.settled)
        self.textChanged.connect(lambda _: later.start())


class ElidedLabel(QtWidgets.QLabel):
    """One line, elided if it does not fit; the tooltip has the whole text. While its words wrap, nothing is elided."""

    def __init__(self, text: str = "", role: str = "", *, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(text, textFormat=Qt.TextFormat.PlainText)
        self._mode = mode
        if mode is not Qt.TextElideMode.ElideRight:  # a path or a name from code
            self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setProperty("role", role)
        self.setSizePolicy(QtWidgets.QSizePolicy.Policy.Ignored, QtWidgets.QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Show another text."""
        super().setText(one_line(text))
        self.setToolTip(tip_text(text))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Any width will do."""
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the part that fits."""
        if self.wordWrap():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        painter.setLayoutDirection(self.layoutDirection())
        box = self.contentsRect()
        text = self.fontMetrics().elidedText(self.text(), self._mode, box.width())
        # As the style would: to ask for it makes PySide build a class with a dozen enumerations first.
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(box, int(self.alignment()), text)


class EmptyState(QtWidgets.QWidget):
    """Shown in an empty panel: what is missing, and buttons to get it."""

    def __init__(self, icon: str, theme: Theme) -> None:
        super().__init__()
        self._icon = icon
        self._picture = QtWidgets.QLabel()
        self._title = label("", "title")
        self._text = label("", "dim")
        self._buttons = QtWidgets.QHBoxLayout()
        self._buttons.setSpacing(GAP)
        for part in (self._picture, self._title, self._text):
            part.setAlignment(Qt.AlignmentFlag.AlignCenter)
        middle = QtWidgets.QWidget(maximumWidth=520)
        middle.setLayout(column(self._picture, self._title, self._text, self._buttons, gap=CLOSE))
        self._buttons.setContentsMargins(0, GAP, 0, 0)
        outer = row(None, middle, None, margin=(MARGIN, TIGHT, MARGIN, TIGHT))
        outer.setStretch(1, 20)
        self.setLayout(column(None, outer, None))
        theme.changed.connect(self._restyle)
        self._restyle(theme.colours)

    def say(self, title: str, text: str = "", *buttons: QtWidgets.QPushButton) -> None:
        """Change the words and the buttons."""
        self._title.setText(title)
        self._text.setText(text)
        clear_layout(self._buttons)
        self._buttons.addStretch(1)
        for each in buttons:
            self._buttons.addWidget(each)
        self._buttons.addStretch(1)
        self._fit()

    def _restyle(self, colours: Colours) -> None:
        pixel_ratio = self.devicePixelRatioF()
        self._picture.setPixmap(stroke_pixmap(self._icon, colours.text_dim, size=40, pixel_ratio=pixel_ratio))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Keep what fits."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Hide the picture in a low panel, and in lower ones the text and the title above buttons, else cut."""
        self._picture.setVisible(self.height() > 190)
        has_buttons = self._buttons.count() > 2  # beside the two stretches
        self._text.setVisible(bool(self._text.text()) and (self.height() > 125 or not has_buttons))
        self._title.setVisible(self.height() > 80 or not has_buttons)
