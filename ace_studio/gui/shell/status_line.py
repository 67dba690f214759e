"""The status line: what the engine is doing, its progress, a button to cancel, and its environment."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QWidget

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.small import GAP, ElidedLabel, button
from ace_studio.gui.words.formatting import seconds_text
from ace_studio.session.document import Activity, Document, EngineState, JobKind
from ace_studio.session.session import Session

_STATE_WORDS: dict[EngineState, str] = {
    EngineState.STARTING: "Starting the engine",
    EngineState.IDLE: "Ready",
    EngineState.BUSY: "Working",
    EngineState.CANCELLING: "Stopping",
    EngineState.LOST: "The engine is not running",
}
_VERB_WORDS: dict[JobKind, str] = {
    JobKind.INSPECT: "Looking at the file",
    JobKind.ENVIRONMENT: "Querying the engine",
}


def activity_text(activity: Activity) -> str:
    """The activity of the engine, in words."""
    if activity.state is EngineState.BUSY:
        words = _VERB_WORDS.get(activity.verb, str(activity.phase.value))
        return f"{words}: {activity.detail}" if activity.detail else words
    return _STATE_WORDS[activity.state]


class StatusLine(QWidget):
    """One line at the bottom of the window."""

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start idle."""
        super().__init__()
        self._session = session
        self._theme = theme
        self._activity = Activity()
        self._dot = QLabel("●")
        self._what = ElidedLabel()
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(160)
        self._bar.setAccessibleName("Progress")
        self._elapsed = QLabel()
        self.cancel_button = button("Cancel (Esc)", session.jobs.cancel)
        self.restart_button = button("Start it again", session.jobs.restart_engine)
        self._about = QLabel()
        for each in (self.cancel_button, self.restart_button):
            each.setStyleSheet("padding: 1px 10px")
        # A fixed height, so that nothing moves when the buttons appear.
        self.setFixedHeight(self.cancel_button.sizeHint().height() + 4)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(GAP, 2, GAP, 2)
        layout.setSpacing(GAP)
        for part in (self._dot, self._what, self._bar, self._elapsed, self.cancel_button, self.restart_button):
            layout.addWidget(part)
        layout.addWidget(self._about)
        layout.setStretch(1, 1)
        self._about.setProperty("role", "dim")
        self._tick = QTimer(self, interval=200)
        self._tick.timeout.connect(self._show_elapsed)
        theme.changed.connect(lambda _: self._show_dot())

    def update_from(self, document: Document) -> None:
        """Show the activity."""
        activity = self._activity = document.activity
        self._what.setText(activity_text(activity))
        working = activity.is_working and activity.state in {EngineState.BUSY, EngineState.CANCELLING}
        self._bar.setVisible(working)
        self._elapsed.setVisible(working)
        self.cancel_button.setVisible(activity.is_working and activity.state is not EngineState.LOST)
        self.cancel_button.setEnabled(activity.state is not EngineState.CANCELLING)
        self.restart_button.setVisible(activity.state is EngineState.LOST)
        if working:
            is_known = activity.fraction is not None
            self._bar.setRange(0, 1000 if is_known else 0)
            if activity.fraction is not None:
                self._bar.setValue(round(1000 * activity.fraction))
            self._show_elapsed()
            self._tick.start()
        else:
            self._tick.stop()
        self._about.setText(_environment_text(document))
        self._show_dot()

    def _show_elapsed(self) -> None:
        self._elapsed.setText(seconds_text(time.monotonic() - self._activity.started_s))

    def _show_dot(self) -> None:
        colours = self._theme.colours
        colour = {
            EngineState.IDLE: colours.good,
            EngineState.LOST: colours.bad,
            EngineState.STARTING: colours.warn,
            EngineState.CANCELLING: colours.warn,
            EngineState.BUSY: colours.accent,
        }[self._activity.state]
        self._dot.setStyleSheet(f"color: {colour}")
        self._dot.setToolTip(_STATE_WORDS[self._activity.state])


def _environment_text(document: Document) -> str:
    environment = document.environment
    if environment is None:
        return ""
    devices = " + ".join(device.label or device.name for device in environment.devices if device.available)
    torch = environment.versions.get("torch", "")
    return "   ".join(
        part for part in (f"torch {torch}" if torch else "", f"Python {environment.python}", devices) if part
    )
