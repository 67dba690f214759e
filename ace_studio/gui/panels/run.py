"""The run panel: the phase, the steps so far, and the log."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtGui import QBrush, QColor, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QProgressBar, QSplitter, QTreeWidget, QTreeWidgetItem

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme, monospace
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, button, column, label, row
from ace_studio.gui.words.formatting import latency_text, plural, seconds_text, speedup_text
from ace_studio.records.results import AttemptStatus, CaptureAttempt, RunStatus, TargetRun
from ace_studio.session.document import Activity, Document, EngineState, JobKind, Part
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
    shows = frozenset({Part.ACTIVITY, Part.LOG, Part.GRAPH, Part.RUNS, Part.FILE, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Build progress, steps and log."""
        super().__init__(session, theme)
        self._activity = Activity()
        self._log_shown: tuple[str, ...] = ()
        self._steps_shown: tuple[object, ...] = ()
        self._phase = label("", wrap=False)
        self._phase.setStyleSheet("font-weight: 600")
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
        self.steps = QTreeWidget()
        self.steps.setHeaderLabels(["step", "outcome"])
        self.steps.setRootIsDecorated(False)
        self.steps.setUniformRowHeights(True)
        self.steps.setAccessibleName("Steps")
        self.steps.setColumnWidth(0, 150)
        self.log = QPlainTextEdit()
        self.log.setReadOnly(True)
        self.log.setUndoRedoEnabled(False)
        self.log.setFont(monospace())
        self.log.setAccessibleName("Log")
        self.log.setPlaceholderText("Output of your code and of torch appears here.")
        self.log.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        split = QSplitter()
        split.setHandleWidth(1)
        split.addWidget(self.steps)
        split.addWidget(self.log)
        split.setSizes([560, 390])
        layout = column(gap=0)
        layout.addLayout(head)
        layout.addWidget(split, 1)
        self.setLayout(layout)
        self.setFocusProxy(self.log)
        self._tick = QTimer(self, interval=200)
        self._tick.timeout.connect(self._show_elapsed)

    def update_from(self, document: Document) -> None:
        """Show activity, steps and log."""
        self._show_activity(document)
        steps = (document.rungs, document.runs, document.baseline, document.capture)
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
        is_working = activity.is_working
        can_start = bool(document.recipe.model.source) and not is_working and not document.needs_trust
        for each in (self.progress, self._elapsed, self.cancel_button):
            each.setVisible(is_working)
        self.cancel_button.setEnabled(activity.state is not EngineState.CANCELLING)
        for each in (self.trace_button, self.run_button):
            each.setVisible(not is_working)
            each.setEnabled(can_start)
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
        if document.failure is not None:
            return f"Failed: {document.failure.problems[0].what}"
        if document.result is not None:
            return f"Done in {seconds_text(document.result.seconds)}"
        if document.graph is not None:
            return "Traced"
        return "Nothing has been run yet" if activity.verb is JobKind.NONE else ""

    def _show_elapsed(self) -> None:
        self._elapsed.setText(seconds_text(time.monotonic() - self._activity.started_s))

    def _fill_steps(self, document: Document) -> None:
        self.steps.clear()
        for attempt in document.rungs:
            self._step(f"capture: {attempt.name}", _attempt_text(attempt), _ATTEMPT_MOODS.get(attempt.status, "bad"))
        if document.baseline is not None and document.baseline.latency_ms is not None:
            self._step(document.baseline.name, latency_text(document.baseline.latency_ms), "")
        for run in document.runs:
            is_bad = run.status is RunStatus.FAILED
            name = f"{run.target} {run.precision}".strip()
            self._step(name, _run_text(run), "bad" if is_bad else "good" if run.verified else "")

    def _step(self, name: str, outcome: str, mood: str) -> None:
        item = QTreeWidgetItem([name, outcome])
        item.setToolTip(1, outcome)
        colour = {"good": self.colours.good, "bad": self.colours.bad}.get(mood)
        if colour:
            item.setForeground(1, QBrush(QColor(colour)))
        self.steps.addTopLevelItem(item)

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
