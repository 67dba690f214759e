"""The panel: the list of past runs, to look at again and to compare, and the line of one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QStackedWidget, QWidget

from ace_studio.gui.panels.history.columns import history_columns
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.flow_layout import Flow
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import GAP, EmptyState, FilterField, button, column, label, row
from ace_studio.gui.widgets.table_look import plain_table, set_widths
from ace_studio.gui.widgets.table_model import ColumnsModel
from ace_studio.gui.words.formatting import plural
from ace_studio.records.results import REPORT_NAME
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document, Part
from ace_studio.session.kept.history import RunSummary
from ace_studio.session.session import Session

if TYPE_CHECKING:
    from ace_studio.gui.panels.history.over_time import OverTime


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
        self.table.doubleClicked.connect(lambda _: self._look())
        self.table.activated.connect(lambda _: self._look())
        self.look_button = button("Open", self._look, role="primary")
        self.compare_button = button("Compare", self._compare)
        self.pin_buttons = [button(f"Pin as {name}", partial(self._pin, side)) for side, name in enumerate(NAMES)]
        self.time_button = button("Over time", self._show_line)
        self.report_button = button("Open report", self._open_report)
        self.folder_button = button("Open folder", self._open_folder)
        self.recipe_button = button("Open choices", self._open_recipe)
        self.remove_button = button("Remove", self._remove)
        self.undo_button = button("Undo removal", session.history.put_back)
        self.tags = self._field("Tags of the selected run", "Tags: a, b", self._set_tags)
        self.note = self._field("Note on the selected run", "Note", self._set_note)
        self.refresh_button = button(
            "Read again", session.history.load_history, tip="Runs of the command line are listed too"
        )
        tools = row(self.filter, self._count, self.tags, self.note, self.refresh_button, gap=6)
        tools.setContentsMargins(GAP, GAP, GAP, 0)
        for at, share in ((0, 3), (2, 1), (3, 2)):
            tools.setStretch(at, share)
        buttons = Flow(gap=6)
        for each in (
            self.look_button, self.compare_button, *self.pin_buttons, self.time_button, self.recipe_button,
            self.report_button, self.folder_button, self.remove_button, self.undo_button,
        ):  # fmt: skip
            buttons.addWidget(each)
        buttons.setContentsMargins(GAP, 6, GAP, GAP)
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self.table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self._remove)
        content = QWidget()
        content.setLayout(column(tools, buttons, self.table, gap=0))
        self._empty = EmptyState("clock")
        self._empty.tint(theme.colours.text_dim)
        self._empty.say("No runs yet", "Runs of the window and of the command line are listed here.")
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self._pages.addWidget(content)
        self._list = content
        self.over_time: OverTime | None = None
        self.setLayout(column(self._pages))
        self.setFocusProxy(self.filter)

    def update_from(self, document: Document) -> None:
        """Show the list; it is read when the panel is first seen."""
        if document.history is None:
            QTimer.singleShot(0, self, self.session.history.load_history)
            return
        self._show_page(document)
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

    def _field(self, name: str, hint: str, settle: Callable[[], None]) -> QLineEdit:
        made = QLineEdit()
        made.setAccessibleName(name)
        made.setPlaceholderText(hint)
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
        self.over_time.show_model(self._chosen()[0].title, self._runs, self.colours)
        self._pages.setCurrentWidget(self.over_time)

    def _choose(self, run_id: int) -> None:
        self._pages.setCurrentWidget(self._list)
        self.table.clearSelection()
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
        self._empty.tint(colours.text_dim)
        if self.isVisible():
            self._show_page(self.session.document)
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
            (self.look_button, one is not None, nothing),
            (self.compare_button, len(chosen) == 2, "Select two runs (Ctrl+click)"),
            *((each, one is not None, nothing) for each in self.pin_buttons),
            (self.time_button, one is not None, nothing),
            (self.report_button, has_report, gone if one else nothing),
            (self.folder_button, folder is not None and folder.is_dir(), gone if one else nothing),
            (self.recipe_button, one is not None, nothing),
            (self.remove_button, bool(chosen), nothing),
        ):
            each.setEnabled(is_on)
            each.setToolTip(_TIPS[each.text()] if is_on else why)
        self.undo_button.setVisible(self.session.history.can_put_back)
        self.note.setEnabled(one is not None)
        self.note.setToolTip("Return keeps it" if one else nothing)
        self.note.setText(one.note if one else "")
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

    def _set_note(self) -> None:
        self.session.history.set_note(self._chosen()[0].id, self.note.text().strip())

    def _remove(self) -> None:
        chosen = self._chosen()
        if chosen:
            self.session.history.remove_past_runs([run.id for run in chosen])


_TIPS = {
    "Open": "Show the run in all panels, read-only, until you go back",
    "Compare": "Show the difference of the two runs in all panels, the older one as A, the reference",
    "Pin as A": "Compare with this run as the reference",
    "Pin as B": "Compare this run with A",
    "Over time": "Draw the runs of this model as a line",
    "Open report": "Open the report of the run in your browser",
    "Open folder": "Open the folder of its artifacts",
    "Open choices": "Open the choices of the run as new ones; unsaved choices can be restored",
    "Remove": "Remove the run from the list; its folder stays on the disk, and the removal can be undone",
}
