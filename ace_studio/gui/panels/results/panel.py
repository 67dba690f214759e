"""The panel: the table of all runs, the verdict below it, and what can be done with a run."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from ace_studio.gui.ops.facts import selected_run
from ace_studio.gui.panels.results.columns import ResultRow, figure_columns, result_columns, result_rows
from ace_studio.gui.style import Theme, told, tr
from ace_studio.gui.widgets.layouts import CLOSE, GAP, HAIR, BesideOrAbove, Flow, box, column
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import ElidedLabel, allow, button, label, offer_menu, quiet, set_role, show_words
from ace_studio.gui.widgets.table_look import plain_table, select_rows
from ace_studio.gui.widgets.table_model import ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, float_speedup_text, plural, sentence, speedup_text
from ace_studio.gui.words.goal_bounds import bound_words
from ace_studio.gui.words.steps import why_not_asked
from ace_studio.records.devices import DeviceKind
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Result, RunStatus, TargetRun
from ace_studio.records.spreadsheet import spreadsheet_text
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, Part
from ace_studio.session.generated_code.opening import opening_code
from ace_studio.session.run_stages import stage_words
from ace_studio.session.run_warnings import job_warnings, run_warnings
from ace_studio.session.session import Session

_CELL_PADDING = 14
"""Of a cell of the table, both sides, in pixels."""
_WORDS_PX = 360
"""Least width of the words beside the buttons; with less the buttons stand below them."""
_LOW_PX = 260
"""A panel lower than this has one line for the notes on a run, so that the table has room."""


def _best_words(result: Result) -> str:
    """``the best is openvino int8-static: 7.65× against eager, 2.10× against fp32 in the same runtime``."""
    if result.chosen is None:
        return tr("no run could be chosen")
    run = result.runs[result.chosen]
    best = tr("the best is {target} {precision}", target=run.target, precision=run.built_words)
    if run.speed_undecided:
        return f"{best}, {tr('not decided whether it is faster: {why}', why=run.speed_undecided)}"
    ratios = []
    if result.baseline is not None and (speed := speedup_text(run).text) != NOTHING:
        ratios.append(tr("{ratio} against {baseline}", ratio=speed, baseline=result.baseline.name))
    if run.float_speedup is not None and run.float_speedup != run.speedup:  # else fp32 there is the baseline
        ratios.append(tr("{ratio} against fp32 in the same runtime", ratio=float_speedup_text(run).text))
    return f"{best}: {', '.join(ratios)}" if ratios else best


def _lost_words(runs: Sequence[TargetRun]) -> str:
    """The note on runs without numbers while no run is selected; empty if there are none."""
    lost = sum(run.error is not None for run in runs)
    return (
        tr("{lost} of {count} runs gave no numbers; select one to see why.", lost=lost, count=len(runs)) if lost else ""
    )


def _unfinished_words(document: Document) -> str:
    """What is done now, or how the run ended without a result."""
    activity = document.activity
    if activity.is_working:
        phase = tr(activity.phase.value)
        return f"{phase}: {told(activity.detail)}" if activity.detail else f"{phase} …"
    if not document.was_cancelled:
        return tr("Stopped before the end")
    is_searched = document.recipe.plan.from_goal and document.recipe.goal.has_bound
    return (
        tr("Cancelled; Run goes on from the plans that were built") if is_searched else tr("Cancelled before the end")
    )


def _is_uncompressed(result: Result) -> bool:
    """Whether there was no goal, and all measured runs have the original precision."""
    measured = [run for run in result.runs if run.status is RunStatus.OK]
    return result.goal_met is None and bool(measured) and all(run.precision == str(Precision.FP32) for run in measured)


def _doubts(document: Document, result: Result) -> list[str]:
    """Why the best run is no good news although it may meet the goal."""
    found = []
    run = None if result.chosen is None else result.runs[result.chosen]
    if run is not None and any((high or 1.0) < 1.0 for high in (run.speedup_high, run.float_speedup_high)):
        found.append(tr("slower than in float"))
    if any(warning.code == "fake-calibration" for warning in job_warnings(document)):
        found.append(tr("calibrated with made-up numbers"))
    return found


def _result_words(document: Document, result: Result) -> str:
    """What `_goal_words` says; where a later job has failed, that it is about the run before."""
    words = _goal_words(document, result)
    return tr("The run before: {words}", words=words) if document.is_result_earlier else words


def _goal_words(document: Document, result: Result) -> str:
    """Whether the goal is met, and by what: ``The goal (accuracy drop at most 1 %) is met: the best is …``."""
    best = "; ".join((_best_words(result), *_doubts(document, result)))
    if result.goal_met is None:
        return tr("No goal was set; {best_words}", best_words=best)
    bounds = bound_words((document.ran_with or document.recipe).goal)
    goal = tr("The goal ({bounds})", bounds=bounds) if bounds else tr("The goal")
    if result.goal_met:
        return tr("{goal} is met: {best_words}", goal=goal, best_words=best)
    return tr("{goal} is not met; {best_words}", goal=goal, best_words=best)


def _goal_role(document: Document, result: Result) -> str:
    """The role of `_goal_words`: good if the goal is met and nothing is in doubt."""
    if result.goal_met is None:
        return "dim"
    return "good" if result.goal_met and not _doubts(document, result) else "warn"


def _compared_words(found: PinnedPair) -> str:
    """``B against A: 2 of 3 latencies differ; grey is within the noise``."""
    latencies = [row.latency for row in found.rows if row.latency.change is not None]
    clear = sum(each.is_clear for each in latencies)
    words = (
        tr("{clear} of {count} latencies differ", clear=clear, count=len(latencies))
        if latencies
        else tr("no latency was measured in both")
    )
    return tr("B against A: {words}; grey is within the noise", words=words)


def _copy(text: str) -> None:
    QApplication.clipboard().setText(text)


class ResultsPanel(Panel):
    """The table, and buttons for the selected run."""

    title = "Results"
    shows = frozenset({Part.RUNS, Part.SELECTION, Part.ACTIVITY, Part.TRUST})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self._stages: tuple[str, ...] = ()
        self._widths: dict[str, int] = {}
        self._exported: tuple[TargetRun | None, str] = (None, "")
        """The last exported run, and the note on it."""
        self._exported_to = ""
        self.model = ColumnsModel(self)
        self.rows: list[ResultRow] = []
        self.table = plain_table(self.model, tr("Comparison of targets"))
        self.menu = self._build_menu()
        offer_menu(self.table, lambda _: self.menu)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._tell_selection())
        self._seeks_best = False
        bar = self.table.verticalScrollBar()
        bar.rangeChanged.connect(lambda *_: self._bring_best_into_sight())
        bar.actionTriggered.connect(lambda _: self._scrolled())
        self.show_pages("chart", box(column(self.table, self._build_foot(), gap=0, stretch=0)))
        self._run_button = button(tr("Run (F6)"), session.jobs.run)
        self._empty.say(
            tr("No results yet"),
            tr("Run builds the model for every target and measures them side by side."),
            self._run_button,
        )
        self.setFocusProxy(self.table)

    def _build_foot(self) -> BesideOrAbove:
        """Below the table: the verdict, notes on the run, where it was exported to, and the buttons."""
        self._verdict = label("")
        self._why = ElidedLabel(role="dim")
        self._saved = ElidedLabel(role="good", mode=Qt.TextElideMode.ElideMiddle)
        self.export_button = button(tr("Export artifact…"), self.export)
        self.plan_button = button(tr("Go to Plan"), lambda: self.panel_wanted.emit("plan"))
        self.warnings_button = button("", lambda: self.panel_wanted.emit("problems"), tip=tr("Show them in Problems"))
        self.more_button = button(tr("More"), lambda: None)
        self.more_button.setMenu(self.menu)
        buttons = Flow(self.plan_button, self.warnings_button, self.more_button, self.export_button)
        words = column(self._verdict, self._why, self._saved, gap=HAIR)
        return BesideOrAbove(words, buttons, least=_WORDS_PX, margin=(GAP, CLOSE, GAP, CLOSE))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Leave room for the table in a low panel."""
        super().resizeEvent(event)
        self._why.setWordWrap(self.height() >= _LOW_PX)

    def _build_menu(self) -> QMenu:
        """What can be done with the table and its selected run; the context menu is the same."""
        menu = QMenu(self, toolTipsVisible=True)
        self.export_action = menu.addAction(tr("Export artifact…"), self.export)
        self.folder_action = menu.addAction(tr("Open folder"), lambda: self.open_outside(self.session.document.output))
        self.code_action = menu.addAction(tr("Copy the code that opens it"), self._copy_code)
        self.code_action.setToolTip(tr("Python with every option that the artifact needs to compute as measured"))
        self.measure_menu = menu.addMenu(tr("Measure on"))
        self.measure_menu.aboutToShow.connect(self._offer_devices)
        self.pin_actions = [
            menu.addAction(tr("Pin this row as {name}", name=name), partial(self._pin, side))
            for side, name in enumerate(NAMES)
        ]
        menu.addSeparator()
        menu.addAction(tr("Copy the table as Markdown"), lambda: _copy(as_markdown(self.model)))
        menu.addAction(tr("Copy the table as CSV"), lambda: _copy(as_csv(self.model)))
        menu.addSeparator()
        self.group_action = self._switch(menu, tr("Group by target"))
        self.dropped_action = self._switch(menu, tr("Hide dropped runs"))
        self.dropped_action.setToolTip(tr("Runs that were built, and lost against a better one"))
        return menu

    def _offer_devices(self) -> None:
        """The devices of the list, as it is now."""
        self.measure_menu.clear()
        is_busy = self.session.document.activity.is_working
        for device in self.session.devices.all():
            measure = partial(self.dialog_wanted.emit, "measure", (self.session, device))
            action = self.measure_menu.addAction(device.name, measure)
            action.setToolTip(device.place)
            if is_busy and device.kind is DeviceKind.LOCAL:
                action.setEnabled(False)
                action.setToolTip(tr("A job is at work on this machine, and would be measured too"))

        self.measure_menu.addSeparator()
        list_devices = partial(self.dialog_wanted.emit, "devices", (self.session,))
        self.measure_menu.addAction(tr("Devices to measure on…"), list_devices)

    def _switch(self, menu: QMenu, text: str) -> QAction:
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(self.session.settings.recall(f"results: {text}") is True)
        action.toggled.connect(lambda is_on: self.session.settings.remember(f"results: {text}", is_on))
        action.toggled.connect(lambda _: self.restyle(self.colours))
        return action

    def update_from(self, document: Document) -> None:
        """Show the runs."""
        allow(self._run_button, why_not_asked(document), "")
        self._pages.setCurrentIndex(1 if document.runs or document.baseline else 0)
        is_other = self.has_changed(
            document.runs, document.baseline, document.result, document.capture, document.comparison
        )
        stages = stage_words(document)
        if is_other or stages != self._stages:
            self._stages = stages
            self.rows = result_rows(
                document, is_grouped=self.group_action.isChecked(), hides_dropped=self.dropped_action.isChecked()
            )
            found, where = document.comparison, document.result.environment if document.result else {}
            self.model.set_columns(
                result_columns(self.rows, colours=self.colours, where=where)
                if found is None
                else figure_columns(found.rows, self.colours)
            )
            self._make_room()
            self._seeks_best = True
            QTimer.singleShot(0, self, self._bring_best_into_sight)
        self._show_selection(document)
        self._show_words(document)

    def _bring_best_into_sight(self) -> None:
        """Scroll to the selected row, else the best, again while the table gets its place, until the user scrolls."""
        if not self._seeks_best:
            return
        chosen = self.session.document.selection.run
        for at, each in enumerate(self.rows):
            if each.is_chosen if chosen is None else each.index == chosen:
                self.table.scrollTo(self.model.index(self.model.view_row(at), 0))

    def _scrolled(self) -> None:
        self._seeks_best = False

    def _make_room(self) -> None:
        """Widen columns to their contents; none becomes narrower."""
        metrics = self.fontMetrics()
        for at, each in enumerate(self.model.columns):
            texts = (str(self.model.index(row, at).data() or "") for row in range(self.model.rowCount()))
            widest = max((metrics.horizontalAdvance(text) for text in texts), default=0)
            needed = max(widest + _CELL_PADDING, metrics.horizontalAdvance(each.title) + _CELL_PADDING)
            self.table.setColumnWidth(at, max(needed, self._widths.get(each.title, 0)))
            self._widths[each.title] = self.table.columnWidth(at)

    def _show_words(self, document: Document) -> None:
        result, run = document.result, selected_run(document)
        if document.comparison is not None:
            words, role = _compared_words(document.comparison), ""
        elif result is None:
            words, role = _unfinished_words(document), "dim"
        elif document.past is not None and document.past.is_unfinished:
            words = tr("The run did not come to its end ({how}): figures until then", how=tr(document.past.status))
            role = "warn"
        elif _is_uncompressed(result):
            words, role = tr("Nothing was compressed: choose a precision or a goal first"), "warn"
        else:
            words, role = _result_words(document, result), _goal_role(document, result)
        warned = len(job_warnings(document))
        self.warnings_button.setVisible(warned > 0)
        self.warnings_button.setText(plural(warned, "warning"))
        self._verdict.setText(words)
        set_role(self._verdict, role)
        is_alone = document.comparison is None
        self.plan_button.setVisible(is_alone and result is not None and _is_uncompressed(result))
        error = run.error if run else None
        warnings = " ".join(f"{told(warning.what)}." for warning in run_warnings(document, run)) if run else ""
        lost = _lost_words(document.runs) if document.selection.run is None else ""
        show_words(self._saved, self._exported[1] if self._exported[0] is run and run is not None else "")
        parts = (sentence(told(part)) for part in (error.what, error.why, error.remedy)) if error else (warnings, lost)
        show_words(self._why, " ".join(part for part in parts if part))
        for each in (self.export_button, self.export_action, self.code_action):
            each.setEnabled(bool(run and run.artifact and document.comparison is None))
        for pin in self.pin_actions:
            pin.setEnabled(run is not None)
        has_artifacts = any(one.artifact for one in document.runs)
        self.measure_menu.menuAction().setEnabled(is_alone and result is not None and has_artifacts)
        self.folder_action.setEnabled(bool(document.output) and Path(document.output).is_dir())

    def _tell_selection(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self.session.view.select_run(self.rows[self.model.source_row(rows[0].row())].index)

    def _show_selection(self, document: Document) -> None:
        index = document.selection.run
        at = next(
            (at for at, each in enumerate(self.rows) if index is not None and index in (each.index, each.partner)), None
        )
        with quiet(self.table.selectionModel()):
            select_rows(self.table, [] if at is None else [self.model.view_row(at)])
        self.table.viewport().update()

    def export(self) -> None:
        """Ask where to, and copy the artifact of the selected run there."""
        document = self.session.document
        run = selected_run(document)
        if run is None or not run.artifact:
            return
        index = document.runs.index(run)
        suffix = Path(run.artifact).suffix
        model = Path(document.recipe.model.source).stem.rpartition(":")[2]
        name = f"{model}-{run.target}-{run.precision}{suffix}"
        kinds = tr("Artifacts of this kind (*{suffix});;All files (*)", suffix=suffix) if suffix else ""
        suggestion = str(Path(document.saving_folder) / name)
        path, _ = QFileDialog.getSaveFileName(self, tr("Export the artifact"), suggestion, kinds)
        written = self.session.files.export_artifact(index, path) if path else ()
        if written:
            path = self.session.document.exported_to  # with the suffix that was left out
            files = f"{plural(len(written), 'file')}, " if len(written) > 1 else ""
            self._exported = run, tr("Exported to {path} ({files}checksums beside it)", path=path, files=files)
            self._exported_to = path
            self._show_words(self.session.document)

    def _pin(self, side: int) -> None:
        document = self.session.document
        run = selected_run(document)
        if run is not None:
            self.session.comparing.pin_shown(side, row=document.runs.index(run))

    def _copy_code(self) -> None:
        document = self.session.document
        run = selected_run(document)
        if run is not None and run.artifact:
            path = self._exported_to if self._exported[0] is run else str(Path(document.output) / run.artifact)
            threads = document.ran_with.measure.threads if document.ran_with else 1
            if not isinstance(threads, int):
                counted = document.result.environment.get("threads") if document.result else None
                threads = counted if isinstance(counted, int) else os.cpu_count() or 1
            inputs = document.capture.inputs if document.capture else ()
            warnings = run_warnings(document, run)
            _copy(opening_code(run, path, warnings=warnings, threads=threads, inputs=inputs))


def cells_of(model: ColumnsModel) -> list[list[str]]:
    """The header and the visible rows, as shown."""
    header = [column.title for column in model.columns]
    shown = range(model.rowCount())
    return [header, *([str(model.index(at, place).data() or "") for place in range(len(header))] for at in shown)]


def as_markdown(model: ColumnsModel) -> str:
    """The visible rows as a Markdown table, numbers to the right."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in cells_of(model)]
    lines.insert(1, ["---:" if column.is_number else "---" for column in model.columns])
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def as_csv(model: ColumnsModel) -> str:
    """The visible rows as CSV."""
    return spreadsheet_text(model.figures())
