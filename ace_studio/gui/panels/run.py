"""The run panel: the phase, the steps so far, and the log."""

import time
from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QBrush, QColor, QResizeEvent, QTextCursor
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from ace_studio.gui.style import Theme, number, told, tr
from ace_studio.gui.widgets.layouts import GAP, TIGHT, BesideOrAbove, Flow, column, row, split
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, ProgressBar, allow, button, label, plain_text, quiet, tip_text
from ace_studio.gui.words.formatting import ATTEMPT_LOOKS, ms_text, plural, seconds_text, speedup_text
from ace_studio.gui.words.problems import not_run_words
from ace_studio.gui.words.steps import why_not, why_not_asked
from ace_studio.records.errors import visible
from ace_studio.records.results import AttemptStatus, CaptureAttempt, RunStatus, TargetRun
from ace_studio.session.comparison.figures import recipe_changes
from ace_studio.session.document import Activity, Document, EngineState, JobKind, Part, QueuedRun, QueueState, StepTime
from ace_studio.session.run_preview import RunPreview
from ace_studio.session.run_stages import stage_words
from ace_studio.session.session import Session

_WORDS_PX = 420
"""Least width of the phase, its progress and times beside the buttons; with less the buttons stand below them."""
_PREVIEW_PX = 150
"""Least height with which the preview is shown; with less the steps need its room."""


class RunPanel(Panel):
    """Progress, the steps so far, and the log."""

    title = "Run"
    shows = frozenset(
        {Part.ACTIVITY, Part.LOG, Part.RECIPE, Part.ENVIRONMENT, Part.GRAPH, Part.RUNS, Part.FILE, Part.TRUST}
    )

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._activity = Activity()
        self._can_start = False
        self._log_shown: tuple[str, ...] = ()
        self._steps: tuple[StepTime, ...] = ()
        self._running_item: tuple[QTreeWidgetItem, StepTime] | None = None
        self._phase = ElidedLabel()
        self._phase.setProperty("weight", "strong")
        self._detail = ElidedLabel(role="dim")
        # Long words must take no room from the panel beside this one; where it is narrow, the details give way first.
        self._phase.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self._elapsed = label("", "dim", wrap=False)
        self.progress = ProgressBar(tr("Progress"))
        self.trace_button = button(tr("Trace (F5)"), session.jobs.trace)
        self.run_button = button(tr("Run (F6)"), session.jobs.run)
        words = row(self._phase, self._detail, self._elapsed, self.progress, stretch=1)
        buttons = Flow(self.trace_button, self.run_button)
        head = BesideOrAbove(words, buttons, least=_WORDS_PX, margin=GAP)
        self.queue = RunQueue(session)
        self.preview = label("", "dim")
        self.preview.setContentsMargins(GAP, 0, GAP, GAP)
        self.steps = QTreeWidget()
        self.steps.setHeaderLabels([tr("step"), tr("outcome")])
        self.steps.setRootIsDecorated(False)
        self.steps.setUniformRowHeights(True)
        self.steps.setAccessibleName(tr("Steps"))
        self.steps.setColumnWidth(0, 165)
        self.log = _log()
        findings = split(self.steps, self.log, sizes=(560, 390), can_close=True)
        # In a low panel they give way to the words and buttons above them.
        findings.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self.setLayout(column(head, self.preview, self.queue, findings, gap=0, stretch=3))
        self.setFocusProxy(self.log)
        self._tick = QTimer(self, interval=200)
        self._tick.timeout.connect(self._show_elapsed)

    def update_from(self, document: Document) -> None:
        """Show activity, steps and log."""
        self._show_activity(document)
        if self.has_changed(document.rungs, document.runs, document.baseline, document.capture, document.steps):
            self._fill_steps(document)
        if document.log is not self._log_shown:
            self._show_log(document.log)

    def _show_activity(self, document: Document) -> None:
        activity = self._activity = document.activity
        self._steps = document.steps
        is_working = activity.is_working
        problem = why_not_asked(document)
        can_start = not is_working and not why_not(document)
        for each in (self.progress, self._elapsed):
            each.setVisible(is_working)
        self.trace_button.setVisible(not is_working)
        allow(self.trace_button, problem, "")
        self.run_button.setText(tr("Run after this (F6)") if is_working else tr("Run (F6)"))
        allow(self.run_button, "" if is_working and document.read_only is None else problem, "")
        self.queue.update_from(document)
        self._can_start = can_start
        self._fit()
        if can_start:
            self.preview.setText(preview_words(self.session.preview(), cancelled_s=_cancelled_after(document)))
        self._phase.setText(self._headline(document))
        is_stopping = activity.state is EngineState.CANCELLING
        self._detail.setText(told(activity.detail) if is_working and not is_stopping else "")
        if is_working:
            self.progress.show_fraction(activity.fraction)
            self._show_elapsed()
            self._tick.start()
        else:
            self._tick.stop()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the preview out of a low panel."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.preview.setVisible(self._can_start and self.height() >= _PREVIEW_PX)

    def _headline(self, document: Document) -> str:
        activity = document.activity
        if activity.is_working:
            if activity.state is EngineState.CANCELLING:
                return tr("Stopping")
            if activity.state is EngineState.STARTING:
                return tr("Waiting for the engine")
            return tr(activity.phase.value)
        if document.wished and document.needs_trust:
            return tr("Trust comes first")
        if document.was_cancelled:
            return tr("Cancelled")
        if document.ended_by is not None:
            return tr("Failed: {what}", what=told(document.ended_by.what))
        if document.result is not None:
            return tr("Done in {time}", time=seconds_text(document.result.seconds))
        if document.graph is not None:
            return tr("Traced")
        return tr("Nothing has been run yet") if activity.verb is JobKind.NONE else ""

    def _show_elapsed(self) -> None:
        now_s = time.monotonic()
        self._elapsed.setText(seconds_text(now_s - self._activity.started_s) + _left_words(self._steps, now_s))
        if self._running_item is not None:
            item, step = self._running_item
            item.setText(1, _step_text(step, now_s=now_s, fraction=self._activity.fraction))

    def _fill_steps(self, document: Document) -> None:
        self.steps.clear()
        self._running_item = None
        # The targets are what counts; the steps grow, and would push them out of sight.
        if document.baseline is not None and document.baseline.latency_ms is not None:
            self._step(document.baseline.name, ms_text(document.baseline.latency_ms.p50), "")
        for run, stage in zip(document.runs, stage_words(document), strict=True):
            is_bad = run.status is RunStatus.FAILED
            name = f"{run.target} {run.built_words}".strip()
            self._step(name, stage or _run_text(run), "bad" if is_bad else "good" if run.verified else "")
        for step in document.steps:
            item = self._step(tr(step.phase.value), _step_text(step), "dim" if step.seconds is None else "")
            if step.since_s is not None:
                self._running_item = item, step
        for attempt in document.rungs:
            if attempt.status is not AttemptStatus.SKIPPED:  # the Capture panel lists these too
                self._step(
                    tr("capture: {name}", name=attempt.name), _attempt_text(attempt), ATTEMPT_LOOKS[attempt.status][2]
                )

    def _step(self, name: str, outcome: str, mood: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem([name, outcome])
        item.setToolTip(1, tip_text(outcome))
        colours = self.colours
        colour = {"good": colours.good, "warn": colours.warn, "bad": colours.bad, "dim": colours.text_dim}.get(mood)
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
            self.log.setPlainText(visible("\n".join(lines)))
        elif len(lines) > len(old):
            cursor = QTextCursor(self.log.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(("\n" if old else "") + visible("\n".join(lines[len(old) :])))
        if at_end:
            bar.setValue(bar.maximum())


def _log() -> QPlainTextEdit:
    made = plain_text(tr("Log"))
    made.setUndoRedoEnabled(False)
    made.setPlaceholderText(tr("Output of your code and of torch appears here."))
    made.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    return made


def _step_text(step: StepTime, *, now_s: float | None = None, fraction: float | None = None) -> str:
    """``9.6 s of about 12.0 s, 45 %``."""
    usual = "" if step.usual_s is None else tr("about {time}", time=seconds_text(max(0.1, step.usual_s)))
    if step.seconds is None:
        return tr("to come, {usual}", usual=usual)
    spent = seconds_text(_spent(step, now_s))
    if step.since_s is None:
        return spent
    parts = [
        tr("{spent} of {usual}", spent=spent, usual=usual) if usual else spent,
        "" if fraction is None else number(fraction, ".0%").replace("%", " %"),
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
    # As much slower as the steps so far were than the last time. Not faster: steps that a cache saves say nothing of
    # those that it does not save.
    pace = min(4.0, max(1.0, sum(step.seconds or 0.0 for step in ended) / usual_s)) if usual_s >= 1 else 1.0
    left_s = 0.0
    for step in steps:
        if step.seconds is None or step.since_s is not None:
            left_s += max(0.0, pace * (step.usual_s or 0.0) - _spent(step, now_s))
    return tr(", about {time} left", time=seconds_text(left_s)) if left_s >= 1 else tr(", nearly done")


def _attempt_text(attempt: CaptureAttempt) -> str:
    words = ATTEMPT_LOOKS[attempt.status][0]
    if attempt.status is AttemptStatus.OK:
        return tr(
            "{words}: {ops} in {time}", words=words, ops=plural(attempt.ops, "op"), time=seconds_text(attempt.seconds)
        )
    why = told(attempt.error.what) if attempt.error else attempt.reason
    return f"{words}: {why}" if why else words


def _run_text(run: TargetRun) -> str:
    if run.status is not RunStatus.OK:
        return told(run.error.what) if run.error else tr(run.status.value)
    if run.latency_ms is None:
        return not_run_words(run) if run.not_run else tr("built")
    parts = [ms_text(run.latency_ms.p50), speedup_text(run).text]
    return ", ".join(part for part in (*parts, tr("verified") if run.verified else "") if part)


_ID = int(Qt.ItemDataRole.UserRole)


class RunQueue(QWidget):
    """A list with buttons; hidden unless something waits, or several runs were asked for."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._shown: tuple[QueuedRun, ...] = ()
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Queue of runs"))
        self.list.currentItemChanged.connect(lambda *_: self._show_buttons())
        self.up = button(tr("Earlier"), lambda: session.jobs.move_queued(self._chosen(), -1))
        self.down = button(tr("Later"), lambda: session.jobs.move_queued(self._chosen(), 1))
        self.remove = button(tr("Remove"), lambda: session.jobs.unqueue(self._chosen()))
        line = row(
            self.list,
            column(self.up, self.down, self.remove, None, gap=TIGHT),
            gap=GAP,
            margin=(GAP, 0, GAP, GAP),
            stretch=0,
        )
        self.setLayout(line)
        self.setFixedHeight(4 * self.fontMetrics().height() + 66)
        self.hide()

    def update_from(self, document: Document) -> None:
        """Show the queue."""
        queue = document.queue
        self.setVisible(len(queue) > 1)
        if queue is self._shown:
            return
        chosen, self._shown = self._chosen(), queue
        with quiet(self.list):
            self.list.clear()
            for at, one in enumerate(queue):
                item = QListWidgetItem(f"{at + 1}.  {tr(str(one.state))}:  {_words(one)}")
                item.setData(_ID, one.id)
                changes = recipe_changes(queue[at - 1].recipe, one.recipe) if at else ()
                item.setToolTip("\n".join(f"{each.name}: {each.first} → {each.second}" for each in changes))
                self.list.addItem(item)
                if one.id == chosen:
                    self.list.setCurrentItem(item)
        self._show_buttons()

    def _chosen(self) -> int:
        """Id of the chosen run; 0 if none is."""
        item = self.list.currentItem()
        return int(item.data(_ID)) if item is not None else 0

    def _show_buttons(self) -> None:
        at = self.list.currentRow()
        waits = [one.state is QueueState.WAITING for one in self._shown]
        is_own = 0 <= at < len(waits) and waits[at]
        self.remove.setEnabled(is_own)
        self.up.setEnabled(is_own and at > 0 and waits[at - 1])
        self.down.setEnabled(is_own and at + 1 < len(waits) and waits[at + 1])


def _cancelled_after(document: Document) -> float:
    """Seconds of the run that was cancelled just now; 0 if none was."""
    return sum(step.seconds or 0.0 for step in document.steps) if document.was_cancelled else 0.0


def preview_words(preview: RunPreview, *, cancelled_s: float = 0.0) -> str:
    """``Run builds 1 plan for 2 targets (a, b): 2 builds. About 1:50, by the last run of this model.``."""
    names = f"{plural(len(preview.targets), 'target')} ({', '.join(preview.targets)})"
    where = names if preview.targets else tr("the targets there are")
    what = tr("Run searches for plans that meet the goal") if preview.is_searched else tr("Run builds 1 plan")
    count = f": {'about ' if preview.is_searched else ''}{plural(preview.builds, 'build')}" if preview.builds else ""
    begin = tr("{what} for {where}{count}.", what=what, where=where, count=count)
    return f"{begin} {_forecast(preview, cancelled_s)}"


def _forecast(preview: RunPreview, cancelled_s: float) -> str:
    if cancelled_s > max(preview.seconds or 0.0, *(preview.others_s or (0.0, 0.0))):
        return tr("The one that was cancelled had taken {time}.", time=seconds_text(cancelled_s))
    if preview.seconds is not None:
        return tr("About {time}, by the last run of this model.", time=seconds_text(preview.seconds))
    if preview.others_s is None:
        return tr("No earlier run says how long it takes.")
    shortest, longest = map(seconds_text, preview.others_s)
    if shortest == longest:
        return tr("About {time}, by a run of another model.", time=longest)
    return tr("Runs of other models took {shortest} to {longest}.", shortest=shortest, longest=longest)


def _words(run: QueuedRun) -> str:
    plan, targets = run.recipe.plan, ", ".join(run.recipe.targets.names)
    what = tr("plans found from the goal") if plan.from_goal else plan.label
    rules = f", {plural(len(plan.rules), 'rule')}" if plan.rules else ""
    return f"{what}{rules}, {targets}"
