"""The panel: the list of past runs with its columns, to look at again and to compare, and the line of one model."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QLineEdit, QMenu, QPushButton

from ace_studio.gui.style import Colours, Theme, tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, BesideOrAbove, Flow, box, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import FilterField, button, label, offer_menu, on_key, text_field
from ace_studio.gui.widgets.table_look import count_words, figure_columns, plain_table, select_rows, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, bytes_text, plural
from ace_studio.records.results import REPORT_NAME
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document, Part
from ace_studio.session.kept.history import MOST_LISTED, RunSummary
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.gui.panels.history.over_time import OverTime

_FILTER_PX = 200
"""Least width of the filter and the count beside the buttons; with less the buttons stand below them."""


class HistoryPanel(Panel):
    """The list of runs, a filter, and what can be done with the selected runs."""

    title = "History"
    shows = frozenset({Part.HISTORY})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._runs: tuple[RunSummary, ...] = ()
        self.model = ColumnsModel(self)
        self.filter = FilterField(tr("Filter the runs"), tr("Filter: openvino 2026-11 …"))
        self.filter.settled.connect(self._apply_filter)
        self._count = label("", "dim", wrap=False)
        self.table = plain_table(self.model, tr("Past runs"), many=True)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._show_actions())
        self.table.activated.connect(lambda _: self._look())
        self.look_button = button(tr("Open"), self._look, role="primary")
        self.compare_button = button(tr("Compare"), self._compare)
        self.menu = self._build_menu()
        offer_menu(self.table, lambda _: self.menu)
        self.more_button = button(tr("More"), lambda: None)
        self.more_button.setMenu(self.menu)
        self.refresh_button = button(
            tr("Refresh"), session.history.load_history, tip=tr("Runs of the command line are listed too")
        )
        buttons = Flow(self.look_button, self.compare_button, self.more_button, self.refresh_button)
        search = row(self.filter, self._count, gap=CLOSE, stretch=0)
        tools = BesideOrAbove(search, buttons, least=_FILTER_PX, margin=(GAP, CLOSE, GAP, CLOSE))
        self.name = self._field(tr("Name of the selected run"), tr("Name"), self._set_name)
        self.name.setToolTip(tr("What you call this run, wherever it is shown; Return keeps it"))
        self.tags = self._field(tr("Tags of the selected run"), tr("Tags: a, b"), self._set_tags)
        self.tags.setToolTip(tr("Words for this run, separated by commas; Return keeps them"))
        self.note = self._field(tr("Note on the selected run"), tr("Note"), self._set_note)
        self.note.setToolTip(tr("Return keeps it"))
        # Below the table: no row moves under the mouse when they appear.
        self._words = box(row(self.name, self.tags, self.note, gap=CLOSE, margin=(GAP, CLOSE, GAP, CLOSE)))
        on_key(self.table, QKeySequence.StandardKey.Delete, self._remove)
        self._list = box(column(tools, self.table, self._words, gap=0))
        self.show_pages("clock", self._list)
        self._empty.say(tr("No runs yet"), tr("Runs of the window and of the command line are listed here."))
        self.over_time: OverTime | None = None
        self.setFocusProxy(self.filter)
        self._show_actions()  # without a run none does anything, also before the list was read

    def _build_menu(self) -> QMenu:
        """What can be done with the selected runs beside *Open* and *Compare*; the context menu is the same."""
        menu = QMenu(self, toolTipsVisible=True)
        self.pin_actions = [
            menu.addAction(tr("Pin as {name}", name=name), partial(self._pin, side)) for side, name in enumerate(NAMES)
        ]
        self.time_action = menu.addAction(tr("Over time"), self._show_line)
        menu.addSeparator()
        self.recipe_action = menu.addAction(tr("Open choices"), self._open_recipe)
        self.report_action = menu.addAction(tr("Open report"), self._open_report)
        self.folder_action = menu.addAction(tr("Open folder"), lambda: self.open_outside(self._chosen()[0].output))
        menu.addSeparator()
        self.remove_action = menu.addAction(tr("Remove"), self._remove)
        self.undo_action = menu.addAction(tr("Undo removal"), self.session.history.put_back)
        return menu

    def update_from(self, document: Document) -> None:
        """Show the list; it is read when the panel is first seen."""
        if document.history is None:
            QTimer.singleShot(0, self, self.session.history.load_history)
            return
        self._show_page(document)
        if document.history is not self._runs:
            kept = {run.id for run in self._chosen()}
            self._runs = document.history
            show_columns(self.table, self.model, history_columns(self._runs, self.colours))
            self._select([at for at, run in enumerate(self._runs) if run.id in kept])
            if self.over_time is not None:
                self.over_time.show_runs(self._runs, self.colours)
        self._show_count()
        self._show_actions()

    def _field(self, name: str, hint: str, settle: Callable[[], None]) -> QLineEdit:
        made = text_field(name, hint)
        made.setMinimumWidth(90)
        made.returnPressed.connect(settle)
        return made

    def _show_page(self, document: Document) -> None:
        """The list, the line or the empty page."""
        if self.over_time is None or self._pages.currentWidget() is not self.over_time:
            has_runs = bool(document.history) or self.session.history.can_put_back
            self._pages.setCurrentWidget(self._list if has_runs else self._empty)

    def _show_line(self) -> None:
        from ace_studio.gui.panels.history.over_time import OverTime  # noqa: PLC0415 - loads the charts

        if self.over_time is None:
            self.over_time = OverTime(self.colours)
            self.over_time.left.connect(lambda: self._pages.setCurrentWidget(self._list))
            self.over_time.chosen.connect(self._choose)
            self._pages.addWidget(self.over_time)
        self.over_time.title = self._chosen()[0].title
        self.over_time.show_runs(self._runs, self.colours)
        self._pages.setCurrentWidget(self.over_time)

    def _choose(self, run_id: int) -> None:
        self._pages.setCurrentWidget(self._list)
        self._select([at for at, run in enumerate(self._runs) if run.id == run_id])

    def _look(self) -> None:
        if self.look_button.isEnabled():
            self.session.history.look_at_run(self._chosen()[0].id)
            if self.session.document.past is not None:
                self.panel_wanted.emit("results")

    def _compare(self) -> None:
        older, newer = sorted(run.id for run in self._chosen())
        self.session.comparing.compare_runs(older, newer)
        if self.session.document.comparison is not None:
            self.panel_wanted.emit("results")

    def _pin(self, side: int) -> None:
        self.session.comparing.pin_run(side, self._chosen()[0].id)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        if self.isVisible():
            self._show_page(self.session.document)
        if self._runs:
            self.model.set_columns(history_columns(self._runs, colours))
        if self.over_time is not None:
            self.over_time.show_runs(self._runs, colours)

    def _chosen(self) -> list[RunSummary]:
        rows = self.table.selectionModel().selectedRows()
        return [self._runs[self.model.source_row(index.row())] for index in rows]

    def _select(self, rows: Sequence[int]) -> None:
        select_rows(self.table, self.model.view_rows(rows))

    def _apply_filter(self) -> None:
        self.model.set_filter(self.filter.text())
        self._show_count()
        self._show_actions()

    def _show_count(self) -> None:
        is_cut = self.model.total >= MOST_LISTED
        self._count.setText(count_words(self.model, plural(self.model.total, "run")) + (" …" if is_cut else ""))
        self._count.setToolTip(
            tr("Only the newest {most} are listed; remove some to see older ones", most=f"{MOST_LISTED:,}")
            if is_cut
            else ""
        )

    def _show_actions(self) -> None:
        """Enable what can be done; what cannot says why."""
        chosen = self._chosen()
        one = chosen[0] if len(chosen) == 1 else None
        folder = Path(one.output) if one is not None and one.output else None
        nothing = tr("Select a run") if not chosen else tr("Select one run only")
        gone = (
            tr("The folder no longer exists: {folder}", folder=folder)
            if folder is not None
            else tr("The run wrote no folder")
        )
        has_report = folder is not None and (folder / REPORT_NAME).is_file()
        pin_tips = (tr("Compare with this run as the reference"), tr("Compare this run with A"))
        choices: tuple[tuple[QPushButton | QAction, bool, str, str], ...] = (
            (self.look_button, one is not None, nothing,
             tr("Show the run in all panels, read-only, until you go back")),
            (self.compare_button, len(chosen) == 2, tr("Select two runs (Ctrl+click)"),
             tr("Show the difference of the two runs in all panels, the older one as A, the reference")),
            *((each, one is not None, nothing, tip) for each, tip in zip(self.pin_actions, pin_tips, strict=True)),
            (self.time_action, one is not None, nothing, tr("Draw the runs of this model as a line")),
            (self.report_action, has_report, gone if one else nothing,
             tr("Open the report of the run in your browser")),
            (self.folder_action, folder is not None and folder.is_dir(), gone if one else nothing,
             tr("Open the folder of its artifacts")),
            (self.recipe_action, one is not None, nothing,
             tr("Open the choices of the run as new ones; unsaved choices can be restored")),
            (self.remove_action, bool(chosen), nothing,
             tr("Remove the run from the list; its folder stays on the disk, and the removal can be undone")),
        )  # fmt: skip
        for each, is_on, why_not, tip in choices:
            each.setEnabled(is_on)
            each.setToolTip(tip if is_on else why_not)
        self.undo_action.setVisible(self.session.history.can_put_back)
        if one is not None and self._words.isHidden():  # which takes room from the rows
            QTimer.singleShot(0, self.table, lambda: self.table.scrollTo(self.table.currentIndex()))
        self._words.setVisible(one is not None)
        if one is not None:
            self.name.setText(one.name)
            self.tags.setText(", ".join(one.tags))
            self.note.setText(one.note)

    def _open_report(self) -> None:
        self.open_outside(str(Path(self._chosen()[0].output) / REPORT_NAME))

    def _open_recipe(self) -> None:
        self.about_to_open.emit()
        self.session.history.open_past_run(self._chosen()[0].id)

    def _set_name(self) -> None:
        self.session.history.set_name(self._chosen()[0].id, self.name.text().strip())

    def _set_tags(self) -> None:
        words = [word.strip() for word in self.tags.text().split(",")]
        self.session.history.set_tags(self._chosen()[0].id, [word for word in words if word])

    def _set_note(self) -> None:
        self.session.history.set_note(self._chosen()[0].id, self.note.text().strip())

    def _remove(self) -> None:
        chosen = self._chosen()
        if chosen:
            self.session.history.remove_past_runs([run.id for run in chosen])


_MOODS: dict[str, Callable[[Colours], str]] = {
    "failed": lambda colours: colours.bad,
    "crashed": lambda colours: colours.bad,
    "goal-not-met": lambda colours: colours.warn,
    "cancelled": lambda colours: colours.text_dim,
}


def history_columns(runs: Sequence[RunSummary], colours: Colours) -> list[Column]:
    """The columns of the list, one row per run; names, notes and tags only where a run has one."""

    def of(read: Callable[[RunSummary], object]) -> list[object]:
        return [read(run) for run in runs]

    def mood(at: int) -> str:
        status = runs[at].status
        return _MOODS.get(status, lambda _: "")(colours)

    def where_any(column: Column) -> list[Column]:
        return [column] if any(column.values) else []

    is_told_apart = len({when_text(run.date) for run in runs}) == len(runs)
    dates = np.array([_seconds(run.date) for run in runs])
    return [
        Column(title="when", values=of(lambda run: run.date), text=when_text if is_told_apart else _to_the_second,
               width=138 if is_told_apart else 158, order=dates),
        Column(title="model", values=of(lambda run: run.title), width=130),
        Column(title="chosen", values=of(lambda run: f"{run.target} {run.precision}".strip() or NOTHING), width=170),
        *where_any(Column(title="name", values=of(lambda run: run.name), width=110, tips=lambda at: runs[at].name)),
        Column(title="outcome", values=of(lambda run: tr(run.status.replace("-", " "))), width=84, colour=mood),
        *figure_columns(runs),
        Column(title="size", values=of(lambda run: run.size_bytes), text=bytes_text, is_number=True, width=84),
        *where_any(Column(title="note", values=of(lambda run: run.note), width=160, tips=lambda at: runs[at].note)),
        *where_any(Column(title="tags", values=of(lambda run: ", ".join(run.tags)), width=90)),
        Column(title="folder", values=of(lambda run: run.output), width=260, tips=lambda at: runs[at].output,
               colour=lambda _: colours.text_dim),
    ]  # fmt: skip


def _seconds(date: str) -> float:
    try:
        return datetime.fromisoformat(date).timestamp()
    except ValueError:
        return float("nan")


def when_text(date: object, form: str = "%Y-%m-%d %H:%M") -> str:
    """Local time, without another ``form`` to the minute."""
    try:
        return format(datetime.fromisoformat(str(date)).astimezone(), form)
    except ValueError:
        return str(date)


def _to_the_second(date: object) -> str:
    return when_text(date, "%Y-%m-%d %H:%M:%S")
