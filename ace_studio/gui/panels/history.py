"""The history panel: past runs on this machine with their choices and results, to open again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QStackedWidget, QWidget

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, EmptyState, FilterField, button, column, label, row
from ace_studio.gui.widgets.table_look import plain_table, set_widths
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, bytes_text, metric_text, ms_text, percent_text, plural
from ace_studio.records.results import REPORT_NAME
from ace_studio.session.document import Document, Part
from ace_studio.session.kept.history import RunSummary
from ace_studio.session.session import Session


def history_columns(runs: Sequence[RunSummary], colours: Colours) -> list[Column]:
    """The columns of the list, one row per run."""

    def of(read: Callable[[RunSummary], object]) -> list[object]:
        return [read(run) for run in runs]

    def mood(at: int) -> str:
        status = runs[at].status
        return colours.bad if status == "failed" else colours.warn if status == "goal-not-met" else ""

    dates = np.array([_seconds(run.date) for run in runs])
    return [
        Column(title="when", values=of(lambda run: run.date), text=_when, width=138, order=dates),
        Column(title="model", values=of(lambda run: run.title), width=170),
        Column(title="outcome", values=of(lambda run: run.status.replace("-", " ")), width=104, colour=mood),
        Column(title="chosen", values=of(lambda run: f"{run.target} {run.precision}".strip() or NOTHING), width=170),
        Column(title="latency", values=of(lambda run: run.latency_ms), text=ms_text, is_number=True, width=84),
        Column(title="speed-up", values=of(lambda run: run.speedup), text=_ratio, is_number=True, width=84,
               tip="Over eager fp32"),
        Column(title="metric", values=of(lambda run: run.metric), text=metric_text, is_number=True, width=76),
        Column(title="drop", values=of(lambda run: run.metric_drop), text=percent_text, is_number=True, width=76),
        Column(title="size", values=of(lambda run: run.size_bytes), text=bytes_text, is_number=True, width=84),
        Column(title="tags", values=of(lambda run: ", ".join(run.tags)), width=90),
        Column(title="folder", values=of(lambda run: run.output), width=260, tips=lambda at: runs[at].output,
               colour=lambda _: colours.text_dim),
    ]  # fmt: skip


def _seconds(date: str) -> float:
    try:
        return datetime.fromisoformat(date).timestamp()
    except ValueError:
        return float("nan")


def _when(date: object) -> str:
    """Local time to the minute."""
    try:
        return f"{datetime.fromisoformat(str(date)).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return str(date)


def _ratio(speedup: float | None) -> str:
    return NOTHING if speedup is None else f"{speedup:.2f}×"


class HistoryPanel(Panel):
    """The list of runs, a filter, and buttons for the selected runs."""

    title = "History"
    shows = frozenset({Part.HISTORY})

    def __init__(self, session: Session, theme: Theme) -> None:
        """Start empty; the list is read when the panel is seen."""
        super().__init__(session, theme)
        self._runs: tuple[RunSummary, ...] = ()
        self.model = ColumnsModel(self)
        self.filter = FilterField("Filter the runs", "Filter: model openvino 2026-11 …")
        self.filter.settled.connect(self._apply_filter)
        self._count = label("", "dim", wrap=False)
        self.table = plain_table(self.model, "Past runs", many=True)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._show_buttons())
        self.table.doubleClicked.connect(lambda _: self._open_report())
        self.report_button = button("Open report", self._open_report)
        self.folder_button = button("Open folder", self._open_folder)
        self.recipe_button = button("Open recipe", self._open_recipe)
        self.remove_button = button("Remove", self._remove)
        self.tags = QLineEdit()
        self.tags.setAccessibleName("Tags of the selected run")
        self.tags.setPlaceholderText("Tags: a, b")
        self.tags.setFixedWidth(130)
        self.tags.returnPressed.connect(self._set_tags)
        self.refresh_button = button(
            "Read again", session.history.load_history, tip="Runs of the command line are listed too"
        )
        tools = row(
            self.filter, self._count, self.tags, self.report_button, self.folder_button, self.recipe_button,
            self.remove_button, self.refresh_button, gap=6,
        )  # fmt: skip
        tools.setContentsMargins(GAP, GAP, GAP, GAP)
        tools.setStretch(0, 1)
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self._remove)
        content = QWidget()
        content.setLayout(column(tools, self.table, gap=0))
        self._empty = EmptyState("clock")
        self._empty.tint(theme.colours.text_dim)
        self._empty.say("No runs yet", "Runs of the window and of the command line are listed here.")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.filter)

    def update_from(self, document: Document) -> None:
        """Show the list; it is read when the panel is first seen."""
        if document.history is None:
            QTimer.singleShot(0, self, self.session.history.load_history)
            return
        self._pages.setCurrentIndex(1 if document.history else 0)
        if document.history is not self._runs:
            is_first = not self.model.columns
            kept = {run.id for run in self._chosen()}
            self._runs = document.history
            self.model.set_columns(history_columns(self._runs, self.colours))
            if is_first:
                set_widths(self.table, self.model)
            self._select([at for at, run in enumerate(self._runs) if run.id in kept])
        self._show_count()
        self._show_buttons()

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        self._empty.tint(colours.text_dim)
        if self._runs:
            self.model.set_columns(history_columns(self._runs, colours))

    def _chosen(self) -> list[RunSummary]:
        rows = self.table.selectionModel().selectedRows()
        return [self._runs[self.model.source_row(index.row())] for index in rows]

    def _select(self, rows: Sequence[int]) -> None:
        for at in self.model.view_rows(rows):
            self.table.selectRow(at)

    def _apply_filter(self) -> None:
        self.model.set_filter(self.filter.text())
        self._show_count()
        self._show_buttons()

    def _show_count(self) -> None:
        shown, total = self.model.rowCount(), self.model.total
        self._count.setText(plural(total, "run") if shown == total else f"{shown} of {plural(total, 'run')}")

    def _show_buttons(self) -> None:
        """Enable the buttons; a disabled button says why."""
        chosen = self._chosen()
        one = chosen[0] if len(chosen) == 1 else None
        folder = Path(one.output) if one is not None and one.output else None
        nothing = "Select a run" if not chosen else "Select one run only"
        gone = f"The folder no longer exists: {folder}" if folder is not None else "The run wrote no folder"
        has_report = folder is not None and (folder / REPORT_NAME).is_file()
        for each, is_on, why in (
            (self.report_button, has_report, gone if one else nothing),
            (self.folder_button, folder is not None and folder.is_dir(), gone if one else nothing),
            (self.recipe_button, one is not None, nothing),
            (self.remove_button, bool(chosen), nothing),
        ):
            each.setEnabled(is_on)
            each.setToolTip(_TIPS[each.text()] if is_on else why)
        self.tags.setEnabled(one is not None)
        self.tags.setToolTip("Words for this run, separated by commas; Return keeps them" if one else nothing)
        self.tags.setText(", ".join(one.tags) if one else "")

    def _open_report(self) -> None:
        if self.report_button.isEnabled():
            report = Path(self._chosen()[0].output) / REPORT_NAME
            self.open_outside(str(report))

    def _open_folder(self) -> None:
        self.open_outside(self._chosen()[0].output)

    def _open_recipe(self) -> None:
        self.about_to_open.emit()
        self.session.history.open_past_run(self._chosen()[0].id)

    def _set_tags(self) -> None:
        words = [word.strip() for word in self.tags.text().split(",")]
        self.session.history.set_tags(self._chosen()[0].id, [word for word in words if word])

    def _remove(self) -> None:
        chosen = self._chosen()
        if chosen:
            self.session.history.remove_past_runs([run.id for run in chosen])


_TIPS = {
    "Open report": "Open the report of the run in your browser",
    "Open folder": "Open the folder of its artifacts",
    "Open recipe": "Open the recipe of the run; unsaved choices can be restored",
    "Remove": "Remove the run from the list; its folder stays on the disk",
}
