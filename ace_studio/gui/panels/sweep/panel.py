"""The panel: axes at the left, results at the right, and above what starts and stops the sweep and says how it is."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QStackedWidget, QTableView, QWidget

from ace_studio.gui.charts.chart import Chart
from ace_studio.gui.panels.sweep.axes import AxisTable, ExclusionField, PlaceFields, RecipeList
from ace_studio.gui.panels.sweep.pictures import HeatTable, draw_front
from ace_studio.gui.style import Colours, Theme, told, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, Flow, box, column, row, scrolling, split
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, ProgressBar, allow, button, label, quiet, set_role
from ace_studio.gui.widgets.table_look import figure_columns, plain_table, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import bytes_text, decibel_text, plural, seconds_text
from ace_studio.gui.words.problems import question_text
from ace_studio.gui.words.steps import why_no_model
from ace_studio.records.errors import ErrorCode, Problem, explained
from ace_studio.records.safe_file import open_inside, write_atomically
from ace_studio.records.sweeps import RowStatus, SweepRow, SweepStatus, with_front
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session
from ace_studio.session.sweep_state import SweepPhase, SweepPreview, SweepState
from ace_studio.sweeps.heat import heat_maps

_REPORT, _TABLES = "sweep.html", ("sweep.csv", "sweep.parquet")
_TABLE, _FRONT = "table", "front"


class SweepPanel(Panel):
    """Every combination of the axes as a run of its own, and all of them compared."""

    title = "Sweep"
    shows = frozenset({Part.SWEEP, Part.RECIPE, Part.FILE, Part.PROBLEMS, Part.ENVIRONMENT})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.setProperty("help", "sweeps#in-the-window")
        self._rows: tuple[SweepRow, ...] = ()
        verbs = session.sweep
        self._what = ElidedLabel()
        self._what.setProperty("weight", "strong")
        self.open_button = button(tr("Open a sweep…"), self._open, tip=tr("The file of a sweep, SWEEP.toml"))
        self.own_button = button(tr("Use the open model"), verbs.use_open_choices,
                                 tip=tr("A sweep of the model and the choices that are open"))  # fmt: skip
        self.save_button = button(tr("Save as…"), self._save, tip=tr("As a file for ace-studio sweep"))
        self.start_button = button(tr("Start"), self._start, role="primary")
        self.cancel_button = button(tr("Cancel"), verbs.stop, tip=tr("Ends the jobs that run; what is done is kept"))
        self.trust_button = button(tr("Trust and continue"), verbs.trust_refused)
        self.progress = ProgressBar(tr("Progress of the sweep"))
        self.progress.setFixedWidth(120)
        self.status = ElidedLabel(role="dim")
        self.axes = AxisTable()
        self.axes.changed.connect(verbs.set_axis)
        self.recipes, self.exclusions, self.forecast = RecipeList(session), ExclusionField(session), label("")
        self.place = PlaceFields(session)
        self.view = ComboBox(tr("View of the results"), chosen=self._show_view)
        self.report_button = button(tr("Open report"), lambda: self.open_outside(str(self._folder / _REPORT)))
        self.export_button = button(tr("Export…"), self._export)
        self.view.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
        self.model = ColumnsModel(self)
        self.table: QTableView = plain_table(self.model, tr("Jobs of the sweep"))
        self.table.setToolTip(tr("Return or a double-click shows the run of a job in all panels"))
        self.table.activated.connect(lambda _: self._look())
        self.heat = HeatTable()
        self.chart: Chart | None = None
        self._pages = QStackedWidget()
        self._pages.addWidget(self.table)
        self._pages.addWidget(self.heat)
        self._tick = QTimer(self, interval=500)
        self._tick.timeout.connect(lambda: self._show_status(self.session.document))
        self._lay_out()
        self.setFocusProxy(self.start_button)
        QTimer.singleShot(0, self, verbs.read_results)

    def _lay_out(self) -> None:
        head = row(
            self.start_button, self.cancel_button, self.trust_button, self.progress, self.status, self.view,
            self.report_button, self.export_button, gap=CLOSE, margin=(GAP, GAP, GAP, CLOSE), stretch=4,
        )  # fmt: skip
        files = Flow(self.open_button, self.own_button, self.save_button)
        form = column(
            self._what, self.forecast, self.recipes, self.axes, self.exclusions, files, self.place, None,
            gap=CLOSE, margin=(GAP, 0, GAP, GAP),
        )  # fmt: skip
        self.setLayout(column(head, split(scrolling(box(form)), self._pages, sizes=(480, 480)), gap=0, stretch=1))

    # --- what is shown ---

    @property
    def _folder(self) -> Path:
        return Path(self.session.document.sweep.rows_of)

    def update_from(self, document: Document) -> None:
        """Show the axes, the forecast and the rows."""
        state = document.sweep
        is_free = not state.is_running
        self._what.setText(Path(state.path).name if state.path else self._model_words(document))
        self.own_button.setVisible(bool(state.sweep.recipes))
        self.axes.update_from(document)
        preview = self.session.sweep.preview()
        self.forecast.setText(preview_words(preview, state))
        set_role(self.forecast, "bad" if preview.problems else "")
        self.recipes.update_from(document)
        self.exclusions.update_from(document)
        self.place.update_from(document)
        for each in (self.open_button, self.own_button):
            each.setEnabled(is_free)
        if self.has_changed(state.rows):
            self._show_rows(state.rows)
        self._show_buttons(document)
        self._show_status(document)
        if state.is_running:
            self._tick.start()
        else:
            self._tick.stop()

    def _model_words(self, document: Document) -> str:
        if count := len(document.sweep.sweep.recipes):
            return plural(count, "recipe")
        return tr("The open model: {name}", name=document.title) if document.title else tr("No model is open")

    def _show_buttons(self, document: Document) -> None:
        state, preview = document.sweep, self.session.sweep.preview()
        left = state.total - sum(one.status is RowStatus.DONE for one in state.rows)
        can_go_on = bool(state.rows) and left > 0 and state.rows_of == self.session.sweep.out
        self.start_button.setText(tr("Continue") if can_go_on else tr("Start"))
        self.start_button.setVisible(not state.is_running)
        self.cancel_button.setVisible(state.is_running)
        self.cancel_button.setEnabled(state.phase is SweepPhase.RUNNING)
        why_not = tr("It cannot start: see the reason below") if preview.problems else ""
        if not state.sweep.recipes:
            why_not = why_not or why_no_model(document)
        tip = tr("Jobs with a result are kept; the others run") if can_go_on else tr("Run every job")
        allow(self.start_button, why_not or ("" if preview.jobs else tr("Open a model, or the file of a sweep.")), tip)
        allow(self.save_button, why_not, tr("As a file for ace-studio sweep"))
        asked = () if state.is_running else self.session.sweep.asked()
        self.trust_button.setVisible(bool(asked))
        self.trust_button.setToolTip("\n".join(map(question_text, asked)))
        has_files = not state.is_running and bool(state.rows_of) and (self._folder / _REPORT).is_file()
        none_yet = tr("The sweep writes it when it ends")
        allow(self.report_button, "" if has_files else none_yet, tr("Open the report of the sweep in your browser"))
        allow(self.export_button, "" if has_files else none_yet, tr("Save the table as CSV or Parquet"))

    def _show_status(self, document: Document) -> None:
        state = document.sweep
        self.progress.setVisible(state.is_running)
        if state.is_running:
            self.progress.show_fraction(state.done / state.total if state.at_once and state.total else None)
            self.status.setText(progress_words(state, time.monotonic()))
        else:
            self.status.setText(outcome_words(state))

    def _show_rows(self, rows: tuple[SweepRow, ...]) -> None:
        self._rows = with_front(sorted(rows, key=lambda one: int(one.job)))
        show_columns(self.table, self.model, sweep_columns(self._rows, self.colours))
        maps = heat_maps([one for one in self._rows if one.status is RowStatus.DONE])
        views = [(tr("Table"), _TABLE), (tr("Front"), _FRONT)]
        only = tr("Batch and shape")
        views += [(only if len(maps) == 1 else f"{only}: {one.title}", one.title) for one in maps]
        chosen = self.view.currentData()
        with quiet(self.view):
            self.view.clear()
            for text, value in views:
                self.view.addItem(text, value)
            self.view.setCurrentIndex(max(0, self.view.findData(chosen)))
        self._show_view()

    def _show_view(self) -> None:
        """Bring the table, the plot or a heat map to the front, and draw it."""
        chosen = self.view.currentData()
        page: QWidget = self.table
        if chosen == _FRONT:
            if self.chart is None:
                self.chart = Chart(tr("Front"))
                self._pages.addWidget(self.chart)
            draw_front(self.chart, self._rows, self.colours)
            page = self.chart
        else:
            for one in heat_maps([each for each in self._rows if each.status is RowStatus.DONE]):
                if one.title == chosen:
                    self.heat.show_map(one, self.colours)
                    page = self.heat
        self._pages.setCurrentWidget(page)

    # --- gestures ---

    def _start(self) -> None:
        focused = QApplication.focusWidget()
        if focused is not None and focused is not self.start_button:
            focused.clearFocus()  # what was typed counts
        self.session.sweep.start()

    def _look(self) -> None:
        """Show the run of the selected job in all panels, as the history does."""
        for index in self.table.selectionModel().selectedRows():
            run = self._rows[self.model.source_row(index.row())].run
            if run is not None:
                self.session.history.look_at_run(run)
                self.panel_wanted.emit("results")

    def _open(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, tr("Open a sweep"), self.session.document.folder, tr("Sweeps (*.toml)")
        )
        if path:
            self.session.sweep.open_file(path)

    def _save(self) -> None:
        name = self.session.document.sweep.path or str(Path(self.session.document.saving_folder) / "sweep.toml")
        path, _ = QFileDialog.getSaveFileName(self, tr("Save the sweep"), name, tr("Sweeps (*.toml)"))
        if path:
            self.session.sweep.save(path)

    def _export(self) -> None:
        kinds = {f"*{Path(name).suffix}": self._folder / name for name in _TABLES if (self._folder / name).is_file()}
        name = str(Path(self.session.document.saving_folder) / _TABLES[0])
        path, _ = QFileDialog.getSaveFileName(self, tr("Export the table"), name, f"CSV, Parquet ({' '.join(kinds)})")
        if path:
            source = kinds.get(f"*{Path(path).suffix}", self._folder / _TABLES[0])
            not_saved = explained(ErrorCode.NOT_FOUND, tr("The table was not saved"), where=path)
            with self.session.reporting(), not_saved, open_inside(source, self._folder) as table:
                write_atomically(Path(path), table.read())


def preview_words(preview: SweepPreview, state: SweepState) -> str:
    """``12 jobs, 2 at once. About 8:30, by earlier runs of their models.``."""
    if preview.problems:
        return "\n".join(map(problem_words, preview.problems))
    if not preview.jobs:
        return tr("Open a model, or the file of a sweep.")
    left_out = preview.combinations - preview.jobs
    count = plural(preview.jobs, "job") + (tr(" ({count} excluded)", count=left_out) if left_out else "")
    where = (
        tr("at {address}", address=state.scheduler) if state.scheduler else tr("{count} at once", count=preview.at_once)
    )
    return f"{count}, {where}. {_forecast(preview, state)}"


def _forecast(preview: SweepPreview, state: SweepState) -> str:
    if preview.seconds is None:
        return tr("No earlier run of these models says how long it takes.")
    time = seconds_text(preview.seconds)
    if state.scheduler:
        words = tr("About {time} for one worker, by earlier runs of their models here.", time=time)
    else:
        words = tr("About {time}, by earlier runs of their models.", time=time)
    if preview.unknown:
        words += " " + tr("Not counted: {jobs} of models that never ran.", jobs=plural(preview.unknown, "job"))
    return words


def problem_words(problem: Problem) -> str:
    """A problem in one line."""
    parts = [f"{problem.where}: {problem.what}" if problem.where else problem.what, problem.why, problem.remedy]
    return ". ".join(part for part in parts if part)


def progress_words(state: SweepState, now_s: float) -> str:
    """``5 of 12 jobs, about 4:10 left; 2 at work: 6 Building, 7 Measuring latency``."""
    if state.phase is SweepPhase.STOPPING:
        return tr("Stopping")
    if state.is_lost:
        return tr("The scheduler does not answer and is looked for; the jobs go on there")
    if not state.at_once:
        return tr("Starting, {time}", time=seconds_text(now_s - state.started_s))
    words = tr(
        "{done} of {total} jobs, {time}", done=state.done, total=state.total, time=seconds_text(now_s - state.started_s)
    )
    if state.remaining_s is not None:
        words += tr(", about {time} left", time=seconds_text(state.remaining_s))
    running = ", ".join(f"{job} {one.phase}" for job, one in sorted(state.at_work.items()))
    return f"{words}; {running}" if running else words


def outcome_words(state: SweepState) -> str:
    """What became of the sweep whose rows are shown; empty if there is none."""
    if state.problems:
        return problem_words(state.problems[0])
    if state.status is None:
        return ""
    counts = Counter(row.status for row in state.rows)
    words = tr("{done} of {total} jobs have a result", done=counts[RowStatus.DONE], total=state.total)
    failed = counts[RowStatus.FAILED] + counts[RowStatus.LOST]
    words += tr(", {count} failed", count=failed) if failed else ""
    return words + (tr(", the sweep was stopped") if state.status is SweepStatus.CANCELLED else "")


_GOAL = {None: "", True: tr("met"), False: tr("not met")}


def sweep_columns(rows: Sequence[SweepRow], colours: Colours) -> list[Column]:
    """One column per axis, then the figures of each job's run."""

    def of(read: Callable[[SweepRow], object]) -> list[object]:
        return [read(row) for row in rows]

    def mood(at: int) -> str:
        row = rows[at]
        return colours.good if row.on_front else "" if row.status is RowStatus.DONE else colours.bad

    def why(at: int) -> str:
        error = rows[at].error
        return "\n".join(map(told, filter(None, (error.what, error.why, error.remedy)))) if error else ""

    tip = tr("No comparable job is at least as good in time, size and accuracy and better in one")
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes))
    has_recipes = len({row.recipe for row in rows}) > 1
    return [
        Column(title="job", values=of(lambda row: int(row.job)), is_number=True, width=48),
        *([Column(title="recipe", values=of(lambda row: row.recipe), width=130)] if has_recipes else []),
        *(Column(title=axis, values=[row.axes.get(axis, "") for row in rows], width=112) for axis in axes),
        Column(title="front", values=of(lambda row: row.on_front), text=lambda is_on: "●" if is_on else "", width=52,
               colour=mood, tip=tip),
        Column(title="outcome", values=of(_outcome), width=180, colour=mood, tips=why),
        *figure_columns(rows),
        Column(title="SQNR", values=of(lambda row: row.fidelity), text=decibel_text, is_number=True, width=84),
        Column(title="size", values=of(lambda row: row.size_bytes), text=bytes_text, is_number=True, width=84),
        Column(title="goal", values=of(lambda row: _GOAL[row.goal_met]), width=68),
        Column(title="host", values=of(lambda row: row.host), width=110, colour=lambda _: colours.text_dim),
    ]  # fmt: skip


def _outcome(row: SweepRow) -> str:
    if row.status is RowStatus.DONE:
        return f"{row.target} {row.precision}"
    return f"{row.status}: {told(row.error.what)}" if row.error else str(row.status)
