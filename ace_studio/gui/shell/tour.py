"""The tour: five stops on the way from a model to an artifact, each beside the control that it tells about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from ace_studio.gui.style import tr, translate_fields
from ace_studio.gui.widgets.layouts import GAP, MARGIN, column, row
from ace_studio.gui.widgets.small import button, label
from ace_studio.records.places import resource_folder

if TYPE_CHECKING:
    from ace_studio.gui.shell.main_window import MainWindow

_WIDTH = 360
_GAP = 10
"""Pixels between the card and what it tells about."""


@dataclass(frozen=True)
class Stop:
    """What a card says, and of what."""

    title: str
    text: str
    panel: str = ""
    """The panel to bring to the front and point at."""
    step: str = ""
    """Or the button in the line of steps."""

    def __post_init__(self) -> None:
        translate_fields(self, "title", "text")


STOPS = msgspec.json.decode((resource_folder() / "tour.json").read_bytes(), type=tuple[Stop, ...])


class Tour(QFrame):
    """A card over the window. The window can be used meanwhile; Esc or the last button ends the tour."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setProperty("role", "card")
        self.setProperty("help", "getting-started")
        self.setAccessibleName(tr("Tour"))
        self.setAutoFillBackground(True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window = window
        self._at = 0
        self._frame = _Frame(window)
        self._title, self._text = label("", "heading"), label("")
        self._count = label("", "dim")
        self.back_button = button(tr("Back"), lambda: self.go(self._at - 1))
        self.next_button = button("", lambda: self.go(self._at + 1), role="primary")
        self.end_button = button(tr("End the tour"), self.close, role="link")
        buttons = row(self.end_button, None, self._count, self.back_button, self.next_button)
        self._content = column(self._title, self._text, buttons, margin=MARGIN, gap=GAP)
        self.setLayout(self._content)
        self.setFixedWidth(_WIDTH)
        self._settled = QTimer(self, interval=100)  # the areas of the window can change their sizes at any time
        self._settled.timeout.connect(self._place)
        window.installEventFilter(self)

    def go(self, at: int) -> None:
        """Show a stop; behind the last one the tour ends."""
        if at >= len(STOPS):
            self.close()
            return
        self._at, stop = at, STOPS[at]
        if stop.panel:
            self._window.commands.show_panel(stop.panel)
        self._title.setText(stop.title)
        self._text.setText(stop.text)
        self._count.setText(tr("{at} of {all}", at=at + 1, all=len(STOPS)))
        self.back_button.setEnabled(at > 0)
        self.next_button.setText(tr("Next") if at + 1 < len(STOPS) else tr("Done"))
        self.setFixedHeight(self._content.totalHeightForWidth(_WIDTH))
        self._place()
        self._frame.show()
        self.show()
        self._settled.start()
        self.next_button.setFocus()

    def target(self) -> QWidget:
        """What the card tells about."""
        stop = STOPS[self._at]
        return self._window.workbench.panel(stop.panel) if stop.panel else self._window.step_line.buttons[stop.step]

    def _place(self) -> None:
        """Put the frame around the target, and the card where there is room beside it."""
        target, window = self.target(), self._window.rect()
        around = QRect(target.mapTo(self._window, QPoint()), target.size()).adjusted(-3, -3, 3, 3) & window
        self._frame.setGeometry(around)
        size, middle = self.size(), around.center()
        across = min(max(middle.x() - size.width() // 2, _GAP), window.right() - size.width() - _GAP)
        down = min(max(middle.y() - size.height() // 2, _GAP), window.bottom() - size.height() - _GAP)
        places = (
            QPoint(around.right() + _GAP, down),
            QPoint(across, around.bottom() + _GAP),
            QPoint(around.left() - _GAP - size.width(), down),
            QPoint(across, around.top() - _GAP - size.height()),
        )
        if STOPS[self._at].step:
            places = places[1:] + places[:1]  # beside the button the card would cover its neighbours
        fitting = (place for place in places if window.contains(QRect(place, size)))
        self.move(next(fitting, QPoint(across, window.bottom() - size.height() - _GAP)))
        self._frame.raise_()
        self.raise_()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Esc ends the tour, and Return presses the button that has the keyboard, as in a dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            focused = self.focusWidget()
            (focused if isinstance(focused, QPushButton) else self.next_button).click()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow the size of the window."""
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Take the frame away with the card. A minimised window hides both, and shows them again."""
        self._settled.stop()
        self._frame.deleteLater()
        super().closeEvent(event)


class _Frame(QWidget):
    """A line around a control, through which the mouse goes."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._theme = window.theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the line."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.colours.accent), 3))
        painter.drawRoundedRect(self.rect().adjusted(2, 2, -2, -2), 6, 6)
