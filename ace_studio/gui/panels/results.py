"""The results panel: the targets compared by latency, speed-up, accuracy, fidelity and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QAbstractItemView, QFileDialog, QHBoxLayout, QStackedWidget, QTableView, QWidget

from ace_studio.gui.ops.facts import selected_run
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, EmptyState, button, column, label, row, set_role
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import (
    NOTHING,
    RatioText,
    bytes_text,
    decibel_text,
    latency_text,
    metric_text,
    percent_text,
    plural,
    speedup_text,
    spread_text,
)
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Baseline, Result, RunStatus, TargetRun
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_CELL_PADDING = 14
"""Of a cell of the table, both sides, in pixels."""


def result_columns(
    runs: Sequence[TargetRun], baseline: Baseline | None, *, chosen: int | None, colours: Colours
) -> list[Column]:
    """The columns of the comparison. The first row is the baseline if there is one."""
    rows = [*([_of_baseline(baseline)] if baseline else []), *runs]
    first = 1 if baseline else 0
    marks = ["★" if chosen is not None and at == chosen + first else "" for at in range(len(rows))]
    speedups = [speedup_text(run) for run in rows]
    lost = [run.status is not RunStatus.OK for run in rows]

    def dim_lost(at: int) -> str:
        return colours.text_dim if lost[at] else ""

    def mood(at: int) -> str:
        run = rows[at]
        return colours.bad if run.status is RunStatus.FAILED else colours.text_dim if lost[at] else ""

    def speed_colour(at: int) -> str:
        run = rows[at]
        if not speedups[at].is_clear or run.speedup is None:
            return colours.text_dim
        return colours.good if run.speedup > 1 else colours.bad

    def why(at: int) -> str:
        error = rows[at].error
        return error.as_text() if error else ""

    def latencies(read: str) -> list[float | None]:
        return [getattr(run.latency_ms, read) if run.latency_ms else None for run in rows]

    return [
        Column(title="", values=marks, tip="★ the best that meets the goal", colour=lambda _: colours.accent),
        Column(title="target", values=[run.target for run in rows], colour=dim_lost, tips=why),
        Column(title="precision", values=[run.precision for run in rows], colour=dim_lost),
        Column(title="status", values=[_status(run, at < first) for at, run in enumerate(rows)],
               colour=mood, tips=why),
        Column(title="latency", values=rows, text=lambda run: latency_text(run.latency_ms),
               order=_numbers(latencies("p50")), tip="Median over the rounds"),
        Column(title="p10 – p90", values=rows, text=lambda run: spread_text(run.latency_ms),
               order=_numbers(latencies("p90")), colour=lambda _: colours.text_dim),
        Column(title="speed-up (95 %)", values=[_speed(one) for one in speedups], colour=speed_colour,
               order=_numbers([run.speedup for run in rows]), tips=lambda at: speedups[at].interval,
               tip="Over eager fp32, measured in the same rounds, with the bootstrap interval of the median ratio"),
        Column(title="metric", values=[run.metric for run in rows], text=metric_text, is_number=True,
               tips=lambda at: _interval(rows[at].metric_low, rows[at].metric_high, metric_text)),
        Column(title="drop", values=[run.metric_drop for run in rows], text=percent_text, is_number=True,
               tips=lambda at: _interval(rows[at].drop_low, rows[at].drop_high, percent_text),
               tip="Relative to eager fp32; negative is a gain. The tooltip of a cell has the 95 % interval, if known"),
        Column(title="SQNR", values=[run.sqnr_db for run in rows], text=decibel_text, is_number=True,
               tip="Fidelity of the outputs to eager fp32"),
        Column(title="size", values=[run.size_bytes for run in rows], text=bytes_text, is_number=True),
        *_where_known("memory", [run.peak_memory_bytes for run in rows], bytes_text,
                      "Peak growth of memory in a fresh process that loads and runs the artifact"),
        *_where_known("tokens/s", [run.tokens_per_s for run in rows], lambda rate: f"{rate:.1f}" if rate else NOTHING,
                      "Measured by decoding step by step"),
        Column(title="verified", values=[_verified(run) for run in rows],
               tip="Reloaded in a fresh process and compared with eager, also at an unseen size"),
    ]  # fmt: skip


def _where_known(title: str, values: list[Any], text: Callable[[Any], str], tip: str) -> list[Column]:
    """A column that appears only if some run has a value."""
    if all(value is None for value in values):
        return []
    return [Column(title=title, values=values, text=text, is_number=True, tip=tip)]


def _interval(low: float | None, high: float | None, text: Callable[[float], str]) -> str:
    """The 95 % interval in words; empty if it is not known."""
    if low is None or high is None:
        return ""
    seen = "; around 0: no difference was seen" if low <= 0 <= high and text is percent_text else ""
    return f"95 %: {text(low)} – {text(high)}{seen}"


def _of_baseline(baseline: Baseline) -> TargetRun:
    return TargetRun(
        target=baseline.name,
        status=RunStatus.OK,
        precision="fp32",
        latency_ms=baseline.latency_ms,
        metric=baseline.metric,
        metric_low=baseline.metric_low,
        metric_high=baseline.metric_high,
        tokens_per_s=baseline.tokens_per_s,
        size_bytes=baseline.size_bytes or None,
    )


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _status(run: TargetRun, is_baseline: bool) -> str:
    if is_baseline:
        return "baseline"
    if run.status is RunStatus.OK:
        return "ok" if run.latency_ms else "built"
    return run.status.value


def _speed(one: RatioText) -> str:
    return f"{one.text}  {one.interval}" if one.is_clear else one.text


def _best_words(result: Result) -> str:
    """``the best is openvino int8-static, 7.65×``."""
    if result.chosen is None:
        return "no run could be chosen"
    run = result.runs[result.chosen]
    speed = speedup_text(run)
    return f"the best is {run.target} {run.precision}" + (f", {speed.text}" if speed.text != NOTHING else "")


def _verified(run: TargetRun) -> str:
    return "yes" if run.verified else NOTHING


def _reason(error: Problem) -> str:
    """A problem as one paragraph: what, why and what to do, each as a sentence."""
    parts = [part.strip() for part in (error.what, error.why, error.remedy) if part.strip()]
    return " ".join(part if part[-1] in ".!?:" else f"{part}." for part in parts)


def _lost_words(runs: Sequence[TargetRun]) -> str:
    """The note on runs without numbers while no run is selected; empty if there are none."""
    lost = sum(run.error is not None for run in runs)
    return f"{lost} of {len(runs)} runs gave no numbers; select one to see why." if lost else ""


def _is_uncompressed(result: Result) -> bool:
    """Whether there was no goal, and all measured runs have the original precision."""
    measured = [run for run in result.runs if run.status is RunStatus.OK]
    return result.goal_met is None and bool(measured) and all(run.precision == str(Precision.FP32) for run in measured)


class ResultsPanel(Panel):
    """The table, and buttons for the selected run."""

    title = "Results"
    shows = frozenset({Part.RUNS, Part.SELECTION, Part.ACTIVITY})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty."""
        super().__init__(session, theme)
        self._shown: tuple[object, ...] = ()
        self._widths: dict[str, int] = {}
        self._exported: tuple[TargetRun | None, str] = (None, "")
        """The last exported run, and the note on it."""
        self.model = ColumnsModel(self)
        self.table = QTableView()
        self.table.setModel(self.model)
        self.table.setAccessibleName("Comparison of targets")
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.setTabKeyNavigation(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 10)
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setSortIndicatorClearable(True)
        self.table.setSortingEnabled(True)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._tell_selection())
        foot = self._build_foot()
        content = QWidget()
        layout = column(gap=0)
        layout.addWidget(self.table, 1)
        layout.addLayout(foot)
        content.setLayout(layout)
        self._empty = EmptyState("chart")
        self._empty.tint(theme.colours.text_dim)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self._run_button = button("Run (F6)", session.jobs.run, role="primary")
        self._empty.say(
            "No results yet", "Run builds the model for every target and measures them side by side.", self._run_button
        )
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.table)

    def _build_foot(self) -> QHBoxLayout:
        """The line below the table: the verdict and the buttons."""
        self._verdict = label("", wrap=True)
        self._why = label("", "dim")
        self.export_button = button("Export artifact…", self._export)
        self.folder_button = button("Open folder", self._open_folder)
        self.plan_button = button("Go to Plan", lambda: self.panel_wanted.emit("plan"))
        foot = row(column(self._verdict, self._why, gap=2), self.plan_button, self.folder_button, self.export_button)
        foot.setContentsMargins(GAP, 6, GAP, 6)
        foot.setStretch(0, 1)
        return foot

    def update_from(self, document: Document) -> None:
        """Show the runs."""
        self._run_button.setEnabled(not document.activity.is_working and not document.needs_trust)
        self._pages.setCurrentIndex(1 if document.runs or document.baseline else 0)
        chosen = document.result.chosen if document.result else None
        wanted = (document.runs, document.baseline, document.result)
        if any(old is not new for old, new in zip(self._shown, wanted, strict=False)) or not self._shown:
            self._shown = wanted
            columns = result_columns(document.runs, document.baseline, chosen=chosen, colours=self.colours)
            self.model.set_columns(columns)
            self._make_room()
            QTimer.singleShot(0, self, self._bring_best_into_sight)  # it has no height before it is first shown
        self._show_selection(document)
        self._show_words(document)

    def _bring_best_into_sight(self) -> None:
        document = self.session.document
        if document.result is not None and document.result.chosen is not None and document.selection.run is None:
            self.table.scrollTo(self.model.index(self.model.view_row(document.result.chosen + self._first()), 0))

    def _make_room(self) -> None:
        """Widen columns to their contents; none becomes narrower."""
        metrics = self.fontMetrics()
        for at, each in enumerate(self.model.columns):
            texts = (str(self.model.index(row, at).data() or "") for row in range(self.model.rowCount()))
            widest = max((metrics.horizontalAdvance(text) for text in texts), default=0)
            needed = max(widest + _CELL_PADDING, metrics.horizontalAdvance(each.title) + _CELL_PADDING)
            self.table.setColumnWidth(at, max(needed, self._widths.get(each.title, 0)))
            self._widths[each.title] = self.table.columnWidth(at)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        self._shown = ()
        if self.isVisible():
            self.update_from(self.session.document)

    def _show_words(self, document: Document) -> None:
        result, run = document.result, selected_run(document)
        if result is None:
            words, role = ("Measuring …" if document.activity.is_working else "Stopped before the end"), "dim"
        elif _is_uncompressed(result):
            words, role = "Nothing was compressed: choose a precision or a goal first", "warn"
        elif result.goal_met is None:
            words, role = f"No goal was set; {_best_words(result)}", "dim"
        elif result.goal_met:
            words, role = f"The goal is met: {_best_words(result)}", "good"
        else:
            words, role = f"Nothing met the goal; {_best_words(result)}", "warn"
        self._verdict.setText(words)
        set_role(self._verdict, role)
        self.plan_button.setVisible(result is not None and _is_uncompressed(result))
        error = run.error if run else None
        warnings = "; ".join(warning.what for warning in run.warnings) if run else ""
        lost = _lost_words(document.runs) if document.selection.run is None else ""
        exported = self._exported[1] if self._exported[0] is run and run is not None else ""
        said = exported or (_reason(error) if error else " ".join(part for part in (warnings, lost) if part))
        self._why.setText(said)
        set_role(self._why, "good" if exported else "dim")
        self._why.setVisible(bool(self._why.text()))
        self.export_button.setEnabled(bool(run and run.artifact))
        self.folder_button.setEnabled(bool(document.output) and Path(document.output).is_dir())

    def _first(self) -> int:
        return 1 if self.session.document.baseline else 0

    def _tell_selection(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            at = self.model.source_row(rows[0].row()) - self._first()
            self.session.view.select_run(at if at >= 0 else None)

    def _show_selection(self, document: Document) -> None:
        index = document.selection.run
        selection = self.table.selectionModel()
        was_blocked = selection.blockSignals(True)
        if index is None or index >= len(document.runs):
            self.table.clearSelection()
        else:
            self.table.selectRow(self.model.view_row(index + self._first()))
        selection.blockSignals(was_blocked)
        self.table.viewport().update()

    def _export(self) -> None:
        document = self.session.document
        run = selected_run(document)
        if run is None or not run.artifact:
            return
        index = document.runs.index(run)
        suggestion = str(Path(document.folder) / Path(run.artifact).name)
        path, _ = QFileDialog.getSaveFileName(self, "Export the artifact", suggestion)
        written = self.session.files.export_artifact(index, path) if path else ()
        if written:
            files = f"{plural(len(written), 'file')}, " if len(written) > 1 else ""
            self._exported = run, f"Exported to {path} ({files}checksums beside it)"
            self._show_words(self.session.document)

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(self.session.document.output))
