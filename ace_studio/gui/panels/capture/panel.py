"""The capture panel: the capture methods with their progress, limits, and controls for single functions."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QStringListModel, Qt, QTimer
from PySide6.QtWidgets import QApplication, QCheckBox, QCompleter, QVBoxLayout, QWidget

from ace_studio.gui.panels.capture.method_list import (
    MethodList,
    capture_summary,
    capture_words,
    method_rows,
    moved,
    wants_batch_only,
)
from ace_studio.gui.style import Colours, Theme, stroke_icon, told, tr
from ace_studio.gui.widgets.differences import difference_column, difference_words
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox
from ace_studio.gui.widgets.layouts import (
    CLOSE,
    GAP,
    MARGIN,
    TIGHT,
    Flow,
    box,
    clear_layout,
    column,
    row,
    scrolling,
    split,
)
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import (
    ElidedLabel,
    allow,
    button,
    label,
    quiet,
    selectable,
    set_role,
    text_field,
    tool_button,
)
from ace_studio.gui.widgets.table_look import plain_table, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import ATTEMPT_LOOKS, NOTHING, seconds_text
from ace_studio.gui.words.problems import problem_text
from ace_studio.gui.words.steps import why_not
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS, CaptureControl, ControlKind
from ace_studio.records.results import AttemptStatus, Warning
from ace_studio.session.code_names import names_in
from ace_studio.session.comparison.findings import Beside, MethodTry, attempts_beside
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session


class CapturePanel(Panel):
    """Capture methods at the left, limits and controls at the right."""

    title = "Capture"
    shows = frozenset({Part.GRAPH, Part.RECIPE, Part.ACTIVITY, Part.TRUST, Part.FILE})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.methods = MethodList(theme)
        self.methods.switched.connect(self._switch)
        self.methods.move_wanted.connect(self._move)
        self.methods.currentItemChanged.connect(lambda *_: self._show_movable())
        self._summary = label("", "dim")
        self.anew_button = button(
            tr("Trace anew"), lambda: session.jobs.trace(anew=True), tip=tr("Trace although a cached capture fits")
        )
        self.compare_button = button(tr("Compare all methods"), lambda: session.jobs.trace(compare_rungs=True))
        self.up_button = button(
            tr("Earlier"), lambda: self._move(self.methods.current, -1), tip=tr("Try it earlier (Alt+Up)")
        )
        self.down_button = button(
            tr("Later"), lambda: self._move(self.methods.current, 1), tip=tr("Try it later (Alt+Down)")
        )
        self.copy_button = button(tr("Copy"), self._copy, tip=tr("The methods with their problems as text"))
        self.reset_button = button(
            tr("Usual order"), self._reset, tip=tr("All methods, in the order that suits most models")
        )
        self.batch_button = button(tr("Trace with batch only"), self._trace_batch_only)
        self.batch_button.setToolTip(tr("A method took too long: keep only the batch dynamic, which is much faster"))
        order = (self.up_button, self.down_button, self.reset_button)
        tools = Flow(self.batch_button, self.compare_button, self.anew_button, *order, self.copy_button)
        tools.setContentsMargins(GAP, CLOSE, GAP, CLOSE)
        summary = row(self._summary, margin=(MARGIN, CLOSE, MARGIN, 0))
        left = box(column(summary, tools, self.methods, gap=0, stretch=2))
        self._present = split(left, scrolling(self._form()), sizes=(640, 440))
        self.compared = ComparedCaptures()
        self.compared.hide()
        self.setLayout(column(self._present, self.compared))
        self.setFocusProxy(self.methods)

    def _form(self) -> QWidget:
        self.limit = DecimalBox(1.0, 86_400.0, decimals=0, suffix=" s", accessibleName=tr("Time limit of each method"))
        self.limit.setToolTip(tr("A method that takes longer is stopped, and the next one is tried"))
        self.limit.valueChanged.connect(lambda seconds: self._set(time_limit_s=float(seconds)))
        tip = tr("Only the batch stays dynamic; every other size is fixed. Much faster if several sizes vary")
        self.batch_only = self._switch_for("batch_only", tr("Batch only"), tip)
        tip = tr("An unchanged model with the same inputs and options is not traced again")
        self.keep = self._switch_for("cache", tr("Keep captures"), tip)
        tip = tr("Takes longer; the graph is still that of the first method that works")
        self.always_compare = self._switch_for("compare_rungs", tr("Always compare all methods"), tip)
        self.controls = ControlsEditor(self.session, self.theme)
        name = label(tr("Time limit of each method"), wrap=False)
        name.setBuddy(self.limit)
        return box(
            column(
                label(tr("Options"), "heading"), Flow(name, self.limit), self.batch_only, self.keep,
                self.always_compare, label(tr("Controls"), "heading"), self.controls, None, margin=MARGIN, gap=CLOSE,
            )
        )  # fmt: skip

    def _switch_for(self, key: str, text: str, tip: str) -> QCheckBox:
        made = QCheckBox(text)
        made.setToolTip(tip)
        made.toggled.connect(lambda on: self._set(**{key: on}))
        return made

    def update_from(self, document: Document) -> None:
        """Show methods, options and controls, or how A and B were captured."""
        found = document.comparison
        self._present.setVisible(found is None)
        self.compared.setVisible(found is not None)
        if found is not None:
            if self.has_changed(found):
                self.compared.show_pair(found, self.colours)
            return
        self.methods.show_rows(method_rows(document))
        self._summary.setText(
            capture_summary(document) or tr("Methods are tried from the top; the first that works is taken.")
        )
        capture = document.recipe.capture
        with quiet(self.limit, self.batch_only, self.keep, self.always_compare):
            self.limit.setValue(capture.time_limit_s)
            self.batch_only.setChecked(capture.batch_only)
            self.keep.setChecked(capture.cache)
            self.always_compare.setChecked(capture.compare_rungs)
        self.controls.update_from(document)
        reason = why_not(document)
        allow(self.compare_button, reason, tr("Try every method once, to see which work"))
        allow(self.anew_button, reason, tr("Trace although a cached capture fits"))
        self.batch_button.setVisible(wants_batch_only(document) and not reason)
        self.anew_button.setVisible(bool(document.capture and document.capture.cached))
        self._show_movable()

    def restyle(self, colours: Colours) -> None:
        """Use another theme."""
        self.methods.restyle()
        self.controls.update_from(self.session.document)
        super().restyle(colours)

    # --- gestures ---

    def _set(self, **values: float | bool) -> None:
        self.session.choices.set_capture(replace(self.session.document.recipe.capture, **values))

    def _trace_batch_only(self) -> None:
        self._set(batch_only=True)
        self.session.jobs.trace()

    def _switch(self, name: str, is_on: bool) -> None:
        methods = self.session.document.recipe.capture.rungs
        self.session.choices.set_rungs((*methods, name) if is_on else tuple(one for one in methods if one != name))
        # Later, when the tree has finished its edit: a refused change shows the old state again.
        QTimer.singleShot(0, self, self._show_again)

    def _show_again(self) -> None:
        self.methods.show_rows(())
        self.methods.show_rows(method_rows(self.session.document))

    def _move(self, name: str, step: int) -> None:
        self.session.choices.set_rungs(moved(self.session.document.recipe.capture.rungs, name, step))

    def _reset(self) -> None:
        self.session.choices.set_rungs(ALL_CAPTURE_METHODS)

    def _show_movable(self) -> None:
        methods, name = self.session.document.recipe.capture.rungs, self.methods.current
        is_on = name in methods
        self.up_button.setEnabled(is_on and methods[0] != name)
        self.down_button.setEnabled(is_on and methods[-1] != name)
        self.reset_button.setEnabled(methods != ALL_CAPTURE_METHODS)

    def _copy(self) -> None:
        lines = []
        for each in method_rows(self.session.document):
            lines.append(f"{each.name}: {each.words} ({each.seconds}, {each.ops} ops)")
            if each.problem is not None:
                lines.append(problem_text(each.problem))
        QApplication.clipboard().setText("\n".join(lines))


MEANINGS: dict[ControlKind, str] = {
    ControlKind.NONSTRICT_TRACE: tr("run the function while tracing instead of reading its code"),
    ControlKind.ALLOW_IN_GRAPH: tr("put the call into the graph without looking inside"),
    ControlKind.FX_WRAP: tr("fx records the call instead of making it"),
    ControlKind.LEAF: tr("fx does not trace into modules of this class"),
    ControlKind.DISABLE: tr("keep the tracer away from the function"),
}
IDLE_CODE = "idle-control"


def offered_names(document: Document) -> list[str]:
    """Functions, methods and classes of the model's files, as controls name them."""
    texts = dict(document.sources)
    source = Path(document.folder) / document.recipe.model.source
    if str(source) not in texts and source.suffix == ".py":
        try:
            texts[str(source)] = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            texts.pop(str(source), None)
    return sorted({name.control_name(path) for path, text in texts.items() for name in names_in(text)})


def idle_words(control: CaptureControl, warnings: Sequence[Warning]) -> str:
    """The warning that a control had no effect; empty without one."""
    return next((one.what for one in warnings if one.code == IDLE_CODE and one.where == control.function), "")


class ControlsEditor(QWidget):
    """A line per control, and a line to add one."""

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session, self._theme = session, theme
        self._shown: tuple[object, ...] = ()
        self._texts: object = None
        self._lines = QVBoxLayout()
        self._lines.setSpacing(TIGHT)
        self.function = text_field(tr("Function or class of the new control"), hint := "model:function")
        self.function.setToolTip(tr("module:function, or module:Class.method; names of your files are offered"))
        self.function.setClearButtonEnabled(True)
        self.function.setMinimumWidth(self.function.fontMetrics().horizontalAdvance(hint) + 4 * GAP)
        self._names = QStringListModel(self)
        completer = QCompleter(self._names, self, caseSensitivity=Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.function.setCompleter(completer)
        self.function.textChanged.connect(lambda _: self._show_addable())
        self.function.returnPressed.connect(self.add)
        self.kind = ComboBox(tr("How to treat it"))
        for kind, meaning in MEANINGS.items():
            self.kind.addItem(str(kind), kind)
            self.kind.setItemData(self.kind.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.kind.currentIndexChanged.connect(lambda _: self._show_meaning())
        self.add_button = button(tr("Add"), self.add)
        self._meaning = label("", "dim")
        entry = Flow(self.kind, self.add_button)
        self.setLayout(column(self._lines, self.function, entry, self._meaning, gap=CLOSE))
        self._show_meaning()
        self._show_addable()

    def update_from(self, document: Document) -> None:
        """Show the controls and their warnings."""
        warnings = document.capture.warnings if document.capture else ()
        shown = (document.recipe.capture.controls, warnings, self._theme.colours)
        if shown != self._shown:
            self._shown = shown
            self._fill(document.recipe.capture.controls, warnings)
        texts = (document.sources, document.recipe.model.source, document.folder)
        if texts != self._texts:
            self._texts = texts
            self._names.setStringList(offered_names(document))

    def _fill(self, controls: Sequence[CaptureControl], warnings: Sequence[Warning]) -> None:
        clear_layout(self._lines)
        if not controls:
            text = tr("No controls yet. A control tells the tracer how to treat one function or module class.")
            self._lines.addWidget(label(text, "dim"))
        for at, control in enumerate(controls):
            self._lines.addWidget(self._line(at, control, idle_words(control, warnings)))

    def _line(self, at: int, control: CaptureControl, idle: str) -> QWidget:
        colours = self._theme.colours
        name = ElidedLabel(control.function, mode=Qt.TextElideMode.ElideLeft)
        name.setProperty("weight", "strong")
        kind = label(str(control.treat_as), "dim", wrap=False)
        kind.setToolTip(MEANINGS[control.treat_as])
        words = tr("Remove {treat_as} for {function}", treat_as=control.treat_as, function=control.function)
        remove = tool_button(words, lambda: self._session.choices.remove_control(at), tip=tr("Remove this control"))
        remove.setIcon(stroke_icon("close", colours.text_dim, colours.text_dim))
        warning = [label(f"⚠ {idle}", "warn")] if idle else []
        made = box(column(row(name, kind, remove, gap=GAP, stretch=0), *warning, gap=0))
        made.setAccessibleName(
            tr("{function} as {treat_as}. {idle}", function=control.function, treat_as=control.treat_as, idle=idle)
        )
        return made

    def add(self) -> None:
        """Add the control, if a function is named."""
        name = self.function.text().strip()
        set_role(self.function, "" if name else "bad")
        if name:
            self._session.choices.add_control(CaptureControl(function=name, treat_as=self.kind.currentData()))
            self.function.clear()

    def _show_meaning(self) -> None:
        self._meaning.setText(f"{self.kind.currentText()}: {MEANINGS[self.kind.currentData()]}.")

    def _show_addable(self) -> None:
        has_name = bool(self.function.text().strip())
        self.add_button.setEnabled(has_name)
        self.add_button.setToolTip("" if has_name else tr("Name a function first"))
        set_role(self.function, "")


class ComparedCaptures(QWidget):
    """How A and B were captured: a line about either capture, then the methods side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.summaries = [selectable(label("")) for _ in NAMES]
        self.model = ColumnsModel(self)
        self.table = plain_table(self.model, tr("Capture methods of A and B"))
        head = column(*self.summaries, margin=(MARGIN, GAP, MARGIN, GAP), gap=TIGHT)
        self.setLayout(column(head, self.table, gap=0))
        self.setFocusProxy(self.table)

    def show_pair(self, found: PinnedPair, colours: Colours) -> None:
        """Show both captures."""
        captures = [side.capture for side in found.sides]
        for name, capture, line in zip(NAMES, captures, self.summaries, strict=True):
            words = tr("not traced") if capture is None else capture_words(capture)
            line.setText(f"{name}: {words}")
        show_columns(self.table, self.model, attempt_columns(attempts_beside(captures[0], captures[1]), colours))


def attempt_columns(rows: Sequence[Beside[MethodTry]], colours: Colours) -> list[Column]:
    """Both attempts of every method."""
    tip = tr("Seconds are single measurements and are not compared")
    tries = [[one.first for one in rows], [one.second for one in rows]]
    found = [
        Column(title="method", values=[one.shown.outcome.name for one in rows], width=100),
        difference_column([difference_words(one) for one in rows], colours, tip=tip),
    ]
    found += [
        Column(title=tr("{name}: outcome", name=name), values=list(map(_outcome_words, each)), width=190,
               tips=partial(_tip, each))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    found += [
        Column(title=f"{name}: {tr('took')}", values=list(map(_seconds, each)), is_number=True, width=72, tip=tip,
               text=lambda seconds: NOTHING if seconds is None else seconds_text(seconds))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    found += [
        Column(title=f"{name}: {tr('ops')}", values=[one.outcome.ops or None if one else None for one in each],
               is_number=True, width=64, text=lambda ops: NOTHING if ops is None else str(ops))
        for name, each in zip(NAMES, tries, strict=True)
    ]  # fmt: skip
    return found


def _outcome_words(one: MethodTry | None) -> str:
    if one is None:
        return NOTHING
    words = ATTEMPT_LOOKS[one.outcome.status][0]
    why = one.outcome.error.what if one.outcome.error is not None else one.outcome.reason
    words = f"{words}: {told(why)}" if why else words
    return f"{tr('taken')}: {words}" if one.is_taken else words


def _seconds(one: MethodTry | None) -> float | None:
    return None if one is None or one.outcome.status is AttemptStatus.SKIPPED else one.outcome.seconds


def _tip(tries: Sequence[MethodTry | None], at: int) -> str:
    one = tries[at]
    error = one.outcome.error if one is not None else None
    return _outcome_words(one) if error is None else problem_text(error)
