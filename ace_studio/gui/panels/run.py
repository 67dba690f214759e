"""The run panel: the phase, the steps so far, and the log."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QTimer
from PySide6.QtGui import QBrush, QColor, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QSplitter, QTreeWidget, QTreeWidgetItem

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme, monospace
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.run_queue import RunQueue, preview_words
from ace_studio.gui.widgets.small import GAP, button, column, label, row
from ace_studio.gui.words.formatting import latency_text, plural, seconds_text, speedup_text
from ace_studio.records.results import AttemptStatus, CaptureAttempt, RunStatus, TargetRun
from ace_studio.session.document import Activity, Document, EngineState, JobKind, Part, StepTime
from ace_studio.session.run_stages import run_stages
from ace_studio.session.session import Session

_ATTEMPT_WORDS: dict[AttemptStatus, str] = {
    AttemptStatus.OK: "captured, and equal to eager",
    AttemptStatus.FAILED: "could not capture it",
    AttemptStatus.WRONG: "captured, but not equal to eager",
    AttemptStatus.TIMEOUT: "took too long",
    AttemptStatus.CRASHED: "ended the engine process",
    AttemptStatus.SKIPPED: "not needed",
}

_ATTEMPT_MOODS: dict[AttemptStatus, str] = {AttemptStatus.OK: "good", AttemptStatus.SKIPPED: ""}


class RunPanel(Panel):
    """Progress, the steps so far, and the log."""

    title = "Run"
    shows = frozenset(
        {Part.ACTIVITY, Part.LOG, Part.RECIPE, Part.ENVIRONMENT, Part.GRAPH, Part.RUNS, Part.FILE, Part.TRUST}
    )

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build progress, steps and log."""
        super().__init__(session, theme)
        self._activity = Activity()
        self._log_shown: tuple[str, ...] = ()
        self._steps_shown: tuple[object, ...] = ()
        self._steps: tuple[StepTime, ...] = ()
        self._running_item: tuple[QTreeWidgetItem, StepTime] | None = None
        self._phase = label("", wrap=False)
        self._phase.setProperty("weight", "strong")
        self._detail = label("", "dim", wrap=False)
        self._elapsed = label("", "dim", wrap=False)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Progress")
        self.cancel_button = button("Cancel (Esc)", session.jobs.cancel)
        self.trace_button = button("Trace (F5)", session.jobs.trace)
        self.run_button = button("Run (F6)", session.jobs.run, role="primary")
        head = row(
            self._phase,
            self._detail,
            self.progress,
            self._elapsed,
            None,
            self.cancel_button,
            self.trace_button,
            self.run_button,
        )
        head.setContentsMargins(GAP, GAP, GAP, GAP)
        head.setStretch(2, 1)
        self.queue = RunQueue(session)
        self.preview = label("", "dim")
        self.preview.setContentsMargins(GAP, 0, GAP, GAP)
        self.steps = QTreeWidget()
        self.steps.setHeaderLabels(["step", "outcome"])
        self.steps.setRootIsDecorated(False)
        self.steps.setUniformRowHeights(True)
        self.steps.setAccessibleName("Steps")
        self.steps.setColumnWidth(0, 190)
        self.log = _log()
        split = QSplitter()
        split.setHandleWidth(1)
        split.addWidget(self.steps)
        split.addWidget(self.log)
        split.setSizes([560, 390])
        layout = column(gap=0)
        layout.addLayout(head)
        layout.addWidget(self.preview)
        layout.addWidget(self.queue)
        layout.addWidget(split, 1)
        self.setLayout(layout)
        self.setFocusProxy(self.log)
        self._tick = QTimer(self, interval=200)
        self._tick.timeout.connect(self._show_elapsed)

    def update_from(self, document: Document) -> None:
        """Show activity, steps and log."""
        self._show_activity(document)
        steps = (document.rungs, document.runs, document.baseline, document.capture, document.steps)
        if any(old is not new for old, new in zip(self._steps_shown, steps, strict=False)) or not self._steps_shown:
            self._steps_shown = steps
            self._fill_steps(document)
        if document.log is not self._log_shown:
            self._show_log(document.log)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        del colours
        self._fill_steps(self.session.document)

    def _show_activity(self, document: Document) -> None:
        activity = self._activity = document.activity
        self._steps = document.steps
        is_working = activity.is_working
        can_start = bool(document.recipe.model.source) and not is_working and not document.needs_trust
        for each in (self.progress, self._elapsed, self.cancel_button):
            each.setVisible(is_working)
        self.cancel_button.setEnabled(activity.state is not EngineState.CANCELLING)
        self.trace_button.setVisible(not is_working)
        self.trace_button.setEnabled(can_start)
        self.run_button.setText("Run after this (F6)" if is_working else "Run (F6)")
        self.run_button.setEnabled(can_start or (is_working and document.read_only is None))
        self.queue.update_from(document)
        self.preview.setVisible(can_start)
        if can_start:
            self.preview.setText(preview_words(self.session.preview()))
        self._phase.setText(self._headline(document))
        detail = activity.detail if is_working else ""
        self._detail.setText(detail if len(detail) < 60 else detail[:57] + "…")
        if is_working:
            is_known = activity.fraction is not None
            self.progress.setRange(0, 1000 if is_known else 0)
            if activity.fraction is not None:
                self.progress.setValue(round(1000 * activity.fraction))
            self._show_elapsed()
            self._tick.start()
        else:
            self._tick.stop()

    def _headline(self, document: Document) -> str:
        activity = document.activity
        if activity.is_working:
            if activity.state is EngineState.CANCELLING:
                return "Stopping"
            if activity.state is EngineState.STARTING:
                return "Waiting for the engine"
            return str(activity.phase.value)
        if document.was_cancelled:
            return "Cancelled"
        if document.failure is not None:
            return f"Failed: {document.failure.problems[0].what}"
        if document.result is not None:
            return f"Done in {seconds_text(document.result.seconds)}"
        if document.graph is not None:
            return "Traced"
        return "Nothing has been run yet" if activity.verb is JobKind.NONE else ""

    def _show_elapsed(self) -> None:
        now_s = time.monotonic()
        self._elapsed.setText(seconds_text(now_s - self._activity.started_s) + _left_words(self._steps, now_s))
        if self._running_item is not None:
            item, step = self._running_item
            item.setText(1, _step_text(step, now_s=now_s, fraction=self._activity.fraction))

    def _fill_steps(self, document: Document) -> None:
        self.steps.clear()
        self._running_item = None
        for step in document.steps:
            item = self._step(step.phase.value, _step_text(step), "dim" if step.seconds is None else "")
            if step.since_s is not None:
                self._running_item = item, step
        for attempt in document.rungs:
            self._step(f"capture: {attempt.name}", _attempt_text(attempt), _ATTEMPT_MOODS.get(attempt.status, "bad"))
        if document.baseline is not None and document.baseline.latency_ms is not None:
            self._step(document.baseline.name, latency_text(document.baseline.latency_ms), "")
        for run, stage in zip(document.runs, run_stages(document), strict=True):
            is_bad = run.status is RunStatus.FAILED
            name = f"{run.target} {run.precision}".strip()
            self._step(name, stage or _run_text(run), "bad" if is_bad else "good" if run.verified else "")

    def _step(self, name: str, outcome: str, mood: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem([name, outcome])
        item.setToolTip(1, outcome)
        colour = {"good": self.colours.good, "bad": self.colours.bad, "dim": self.colours.text_dim}.get(mood)
        if colour:
            item.setForeground(1, QBrush(QColor(colour)))
        self.steps.addTopLevelItem(item)
        return item

    def _show_log(self, lines: tuple[str, ...]) -> None:
        """Append new lines; rewrite the log only if old lines were dropped."""
        old = self._log_shown
        self._log_shown = lines
        is_continued = len(lines) >= len(old) and (not old or lines[len(old) - 1] is old[-1])
        bar = self.log.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 4
        if not is_continued:
            self.log.setPlainText("\n".join(lines))
        elif len(lines) > len(old):
            cursor = QTextCursor(self.log.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(("\n" if old else "") + "\n".join(lines[len(old) :]))
        if at_end:
            bar.setValue(bar.maximum())


def _log() -> QPlainTextEdit:
    made = QPlainTextEdit()
    made.setReadOnly(True)
    made.setUndoRedoEnabled(False)
    made.setFont(monospace())
    made.setAccessibleName("Log")
    made.setPlaceholderText("Output of your code and of torch appears here.")
    made.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    return made


def _step_text(step: StepTime, *, now_s: float | None = None, fraction: float | None = None) -> str:
    """``9.6 s of about 12.0 s, 45 %``."""
    usual = "" if step.usual_s is None else f"about {seconds_text(step.usual_s)}"
    if step.seconds is None:
        return f"to come, {usual}"
    spent = seconds_text(_spent(step, now_s))
    if step.since_s is None:
        return spent
    parts = [
        f"{spent} of {usual}" if usual else spent,
        "" if fraction is None else f"{fraction:.0%}".replace("%", " %"),
    ]
    return ", ".join(part for part in parts if part)


def _spent(step: StepTime, now_s: float | None) -> float:
    going_on = 0.0 if step.since_s is None or now_s is None else max(0.0, now_s - step.since_s)
    return (step.seconds or 0.0) + going_on


def _left_words(steps: Sequence[StepTime], now_s: float) -> str:
    """``, about 20 s left``; empty if no earlier job says."""
    if not any(step.usual_s is not None for step in steps):
        return ""
    ended = [step for step in steps if step.usual_s and step.seconds is not None and step.since_s is None]
    usual_s = sum(step.usual_s or 0.0 for step in ended)
    # As much slower or faster as the steps so far were than the last time.
    pace = min(4.0, max(0.25, sum(step.seconds or 0.0 for step in ended) / usual_s)) if usual_s >= 1 else 1.0
    left_s = 0.0
    for step in steps:
        if step.seconds is None or step.since_s is not None:
            left_s += max(0.0, pace * (step.usual_s or 0.0) - _spent(step, now_s))
    return f", about {seconds_text(left_s)} left" if left_s >= 1 else ", nearly done"


def _attempt_text(attempt: CaptureAttempt) -> str:
    words = _ATTEMPT_WORDS[attempt.status]
    if attempt.status is AttemptStatus.OK:
        return f"{words}: {plural(attempt.ops, 'op')} in {seconds_text(attempt.seconds)}"
    return f"{words}: {attempt.error.what}" if attempt.error else words


def _run_text(run: TargetRun) -> str:
    if run.status is not RunStatus.OK:
        return run.error.what if run.error else run.status.value
    if run.latency_ms is None:
        return "built"
    parts = [latency_text(run.latency_ms), speedup_text(run).text]
    return ", ".join(part for part in (*parts, "verified" if run.verified else "") if part)
