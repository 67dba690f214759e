"""The status line: what the engine is doing, its progress, and its environment."""

import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel, QWidget

from ace_studio.gui.style import Theme, told, tr
from ace_studio.gui.widgets.layouts import GAP, HAIR, row
from ace_studio.gui.widgets.small import ElidedLabel, ProgressBar, button
from ace_studio.gui.words.formatting import seconds_text
from ace_studio.session.document import Activity, Document, EngineState, JobKind
from ace_studio.session.session import Session

TOLD_AFTER_S = 120.0
"""Seconds without progress after which the line says that the job still works."""
_STATE_WORDS: dict[EngineState, str] = {
    EngineState.STARTING: tr("Starting the engine"),
    EngineState.IDLE: tr("Ready"),
    EngineState.BUSY: tr("Working"),
    EngineState.CANCELLING: tr("Stopping"),
    EngineState.LOST: tr("The engine is not running"),
}
_VERB_WORDS: dict[JobKind, str] = {
    JobKind.INSPECT: tr("Looking at the file"),
    JobKind.ENVIRONMENT: tr("Querying the engine"),
}


def activity_text(activity: Activity) -> str:
    """The activity of the engine, in words."""
    if activity.state is EngineState.BUSY:
        words = _VERB_WORDS.get(activity.verb, tr(activity.phase.value))
        return f"{words}: {told(activity.detail)}" if activity.detail else words
    return _STATE_WORDS[activity.state]


class StatusLine(QWidget):
    """One line at the bottom of the window."""

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._theme = theme
        self._activity, self._since_s = Activity(), time.monotonic()
        self._dot = QLabel("●")
        self._what = ElidedLabel()
        self._bar = ProgressBar(tr("Progress"))
        self._bar.setFixedWidth(160)
        self._elapsed = QLabel()
        self.restart_button = button(tr("Start it again"), session.jobs.restart_engine)
        self._about = QLabel()
        self.restart_button.setStyleSheet("padding: 1px 10px")
        # A fixed height, so that nothing moves when the button appears.
        self.setFixedHeight(self.restart_button.sizeHint().height() + 4)
        self._about.setProperty("role", "dim")
        # The time stands before the bar: that stays where it is while the time grows longer.
        parts = (self._elapsed, self._bar, self.restart_button, self._about)
        self.setLayout(row(self._dot, self._what, *parts, margin=(GAP, HAIR, GAP, HAIR), stretch=1))
        self._tick = QTimer(self, interval=200)
        self._tick.timeout.connect(self._show_elapsed)
        theme.changed.connect(lambda _: self._show_dot())

    def update_from(self, document: Document) -> None:
        """Show the activity."""
        activity = document.activity
        if activity != self._activity:
            self._activity, self._since_s = activity, time.monotonic()
        wished = {JobKind.TRACE: tr("Trace"), JobKind.RUN: tr("Run")}.get(document.wished, "")
        waits = document.wished and document.needs_trust and not activity.is_working
        now = tr("Trust comes first") if waits else activity_text(activity)
        self._what.setText(tr("{now}, then {next}", now=now, next=wished) if wished else now)
        working = activity.is_working and activity.state in {EngineState.BUSY, EngineState.CANCELLING}
        self._bar.setVisible(working)
        self._elapsed.setVisible(working)
        self.restart_button.setVisible(activity.state is EngineState.LOST)
        if working:
            self._bar.show_fraction(activity.fraction)
            self._show_elapsed()
            self._tick.start()
        else:
            self._tick.stop()
        self._about.setText(_environment_text(document))
        self._show_dot()

    def _show_elapsed(self) -> None:
        now_s = time.monotonic()
        self._elapsed.setText(seconds_text(now_s - self._activity.started_s))
        if (quiet_s := now_s - self._since_s) > TOLD_AFTER_S and self._activity.state is EngineState.BUSY:
            words = tr("still working, nothing new for {minutes:.0f} min: wait or cancel").format(minutes=quiet_s / 60)
            self._what.setText(f"{activity_text(self._activity)}: {words}")

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
    environment, host = document.environment, document.recipe.engine.host
    if environment is None or (host and not document.is_trusted):
        return host
    devices = " + ".join(device.label or device.name for device in environment.devices if device.available)
    torch = environment.versions.get("torch", "")
    return "   ".join(
        part for part in (host, f"torch {torch}" if torch else "", f"Python {environment.python}", devices) if part
    )
