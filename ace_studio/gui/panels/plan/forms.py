"""The forms of the plan: the goal with what to optimise, precisions, the targets to build for, and measuring."""

from typing import Any

from msgspec.structs import replace
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QGridLayout, QLabel, QWidget

from ace_studio.gui.ops.precision_offers import AUTO, Offer, grey_out, precision_offers, warning_for
from ace_studio.gui.panels.plan.field_rows import DECODE_FIELDS, MEASURE_FIELDS, SCHEME_FIELDS
from ace_studio.gui.panels.plan.module_tree import ModuleTree
from ace_studio.gui.panels.plan.record_form import RecordForm, summary_of
from ace_studio.gui.panels.plan.rule_list import RuleList
from ace_studio.gui.panels.plan.section import Section
from ace_studio.gui.style import told, tr
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, WholeBox
from ace_studio.gui.widgets.layouts import CLOSE, TIGHT, column
from ace_studio.gui.widgets.small import fill_combo, label, quiet, set_role, show_words
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.goal_bounds import BOUNDS, BoundRow
from ace_studio.records.messages import EnvironmentReport, TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import MeasureChoice, Objective
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.session.document import Document
from ace_studio.session.session import Session


class GoalForm(QWidget):
    """A box and a number per bound."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.checks: dict[str, QCheckBox] = {}
        self.numbers: dict[str, QDoubleSpinBox] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(0, 1)
        for at, bound in enumerate(BOUNDS):
            check = QCheckBox(bound.text[:1].upper() + bound.text[1:])
            number = DecimalBox(keyboardTracking=False, minimumWidth=112)
            check.setToolTip(bound.tip)
            check.toggled.connect(lambda on, row=bound: self._toggle(row, on))
            number.setRange(bound.low, bound.high)
            number.setDecimals(bound.decimals)
            number.setSuffix(bound.suffix)
            number.setSingleStep(10 ** -min(1, bound.decimals))
            number.setAccessibleName(bound.text)
            number.valueChanged.connect(lambda value, row=bound: self._set(row, value))
            grid.addWidget(check, at, 0)
            grid.addWidget(number, at, 1)
            self.checks[bound.field], self.numbers[bound.field] = check, number
        self.objective = ComboBox(tr("Optimise"), chosen=self._choose_objective)
        grid.addWidget(QLabel(tr("Among these, optimise")), len(BOUNDS), 0)
        grid.addWidget(self.objective, len(BOUNDS), 1)

    def update_from(self, document: Document) -> None:
        """Show the bounds."""
        goal = document.recipe.goal
        for bound in BOUNDS:
            value = getattr(goal, bound.field)
            check, number = self.checks[bound.field], self.numbers[bound.field]
            with quiet(check, number):
                check.setChecked(value is not None)
                number.setEnabled(value is not None)
                if not number.hasFocus() or value is None or abs(number.value() - value * bound.scale) > 1e-9:
                    number.setValue(bound.start if value is None else value * bound.scale)
        fill_combo(self.objective, [(tr(each), str(each)) for each in Objective], str(goal.optimize))

    def _toggle(self, bound: BoundRow, is_on: bool) -> None:
        self._change(**{bound.field: self.numbers[bound.field].value() / bound.scale if is_on else None})

    def _set(self, bound: BoundRow, value: float) -> None:
        if self.checks[bound.field].isChecked():
            self._change(**{bound.field: value / bound.scale})

    def _choose_objective(self) -> None:
        self._change(optimize=Objective(self.objective.currentData()))

    def _change(self, **values: Any) -> None:
        self._session.choices.set_goal(replace(self._session.document.recipe.goal, **values))


BY_NAME = tr("Left out: another target runs the same code and builds faster. Untick the first line to choose it.")
"""Note on an available target that ``auto`` leaves out."""


class TargetsForm(QWidget):
    """A box for ``auto``, and one per target."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.auto = QCheckBox(tr("All available targets that fit the plan"))
        self.auto.toggled.connect(lambda _: self._choose())
        self.boxes: dict[str, QCheckBox] = {}
        self._reasons = {name: label("", "dim") for name in TARGET_ROWS}
        layout = column(self.auto, gap=TIGHT)
        for name in TARGET_ROWS:
            box = QCheckBox(name)
            box.toggled.connect(lambda _: self._choose())
            self.boxes[name] = box
            self._reasons[name].setIndent(24)
            layout.addWidget(box)
            layout.addWidget(self._reasons[name])
        self.setLayout(layout)

    def update_from(self, document: Document) -> None:
        """Show the choice, and what is possible."""
        names = document.recipe.targets.names
        is_auto = AUTO in names
        environment = document.environment
        reports = {report.name: report for report in environment.targets} if environment else {}
        precision = "" if document.recipe.plan.from_goal else str(document.recipe.plan.default)
        with quiet(self.auto, *self.boxes.values()):
            self.auto.setChecked(is_auto)
            for name, box in self.boxes.items():
                report = reports.get(name)
                is_available = report is None or report.available
                box.setText(_title(name, report))
                box.setChecked(name in names or (is_auto and _is_taken(name, report, precision)))
                box.setEnabled(not is_auto and (is_available or name in names))
                self._say(name, report, precision, is_left_out=is_auto and name not in names)

    def _say(self, name: str, report: TargetReport | None, precision: str, *, is_left_out: bool) -> None:
        reason = self._reasons[name]
        words, role = "", "dim"
        if report is not None and not report.available:
            words = "\n".join(part for part in (report.reason, report.install) if part)
        elif report is not None and report.precisions.get(precision):
            words, role = f"{precision}: {report.precisions[precision]}", "warn"
        elif report is not None and (report.not_run or (is_left_out and not report.is_in_auto)):
            words = told(report.not_run) or BY_NAME
        show_words(reason, words, role)
        self.boxes[name].setToolTip(words)

    def _choose(self) -> None:
        chosen = [name for name, box in self.boxes.items() if box.isChecked()]
        self._session.choices.set_targets([AUTO] if self.auto.isChecked() else chosen)


def _is_taken(name: str, report: TargetReport | None, precision: str) -> bool:
    """Whether ``auto`` includes this target; until the engine has reported, its row decides."""
    if report is None:
        return TARGET_ROWS[name].is_in_auto
    return report.available and report.is_in_auto and not report.precisions.get(precision)


def _title(name: str, report: TargetReport | None) -> str:
    if report is None:
        return name
    words = report.label or name
    return f"{words}  {report.version}" if report.version and report.available else words


FROM_GOAL = "from-goal"
NO_GOAL = tr(
    "No goal is set below, so a run would compress nothing. Choose a precision here, or tick a bound of the goal."
)
_ABOUT: dict[str, str] = {
    FROM_GOAL: tr("The goal below chooses the precision of every op when it runs."),
    "fp32": tr("The reference: nothing is compressed."),
    "fp16": tr("Half precision; overflows at 65504."),
    "bf16": tr("The range of fp32 with 7 bits of mantissa."),
    "int8-static": tr("8-bit weights and activations; ranges from calibration inputs."),
    "int8-dynamic": tr("8-bit weights and activations; ranges found at every call."),
    "int8-weight": tr("8-bit weights, float arithmetic."),
    "int4-weight": tr("4-bit weights in groups, float arithmetic."),
    "fp8": tr("8-bit floats, on devices that have them."),
}


class PrecisionForm(QWidget):
    """A choice for all ops, ticks on modules, and a table of rules; later rules win."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.default = ComboBox(tr("Precision of every op that no rule names"), chosen=self._choose_default)
        self._about = label("", "dim")
        self._refused = label("", "warn")
        self.modules = ModuleTree(session)
        self.rules = RuleList(session)
        self.scheme = RecordForm(session, SCHEME_FIELDS)
        parts = (self.default, self._about, self._refused, self.modules, self.rules, self.scheme)
        self.setLayout(column(*parts, gap=CLOSE))
        self.scheme.setVisible(bool(self.scheme.fields))  # not before it has a parent: it would be a window

    def update_from(self, document: Document) -> None:
        """Show default, modules and rules."""
        plan = document.recipe.plan
        offers = precision_offers(document)
        options = [(tr("found from the goal"), FROM_GOAL), *((str(each), str(each)) for each in Precision)]
        chosen = FROM_GOAL if plan.from_goal else str(plan.default)
        fill_combo(self.default, options, chosen)
        grey_out(self.default, offers)
        # A look at the file sets what a new model begins with; until then there is nothing to warn of.
        has_nothing_to_do = plan.from_goal and not document.recipe.goal.has_bound and document.file is not None
        self._about.setText(NO_GOAL if has_nothing_to_do else _ABOUT.get(chosen, ""))
        set_role(self._about, "warn" if has_nothing_to_do else "dim")
        show_words(self._refused, warning_for(offers, chosen, document))
        self.modules.update_from(document, offers)
        self.rules.update_from(document, offers)
        self.scheme.update_from(document)

    def _choose_default(self) -> None:
        value = self.default.currentData()
        if value == FROM_GOAL:
            self._session.plan.set_plan_from_goal(True)
        else:
            self._session.plan.set_default_precision(Precision(value))


_DEVICES = ((tr("CUDA if there is one, else CPU"), "auto"), ("CPU", "cpu"), ("CUDA", "cuda"))


_WORDS = {-1: "best", 0: "all"}
"""What the smallest values of the field for threads mean, as in a recipe."""


class ThreadsBox(WholeBox):
    """A number of threads, or one of `_WORDS`."""

    def textFromValue(self, value: int) -> str:  # noqa: N802 - Qt's name
        """The number, or the word."""
        return _WORDS.get(value) or super().textFromValue(value)

    def valueFromText(self, text: str) -> int:  # noqa: N802 - Qt's name
        """The number, or that of the word."""
        numbers = {word: value for value, word in _WORDS.items()}
        return numbers[text.strip()] if text.strip() in numbers else super().valueFromText(text)

    def validate(self, text: str, place: int) -> tuple[QValidator.State, str, int]:
        """Words, and what may become one, are taken as well."""
        typed = text.strip()
        if typed in _WORDS.values():
            return QValidator.State.Acceptable, text, place
        if typed and any(word.startswith(typed) for word in _WORDS.values()):
            return QValidator.State.Intermediate, text, place
        return super().validate(text, place)


class MeasureForm(QWidget):
    """Three lines, then the rows of the recipe's table."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.device = ComboBox(tr("Device"), _DEVICES, chosen=lambda: self._set(device=self.device.currentData()))
        self._device_note = label("", "dim")
        self.threads = ThreadsBox(-1, 512, accessibleName=tr("Threads, all or best"), keyboardTracking=False)
        self.threads.setToolTip(tr("best: the number with which the original is fastest"))
        self.threads.valueChanged.connect(lambda value: self._set(threads=_WORDS.get(value, value)))
        self.rounds = WholeBox(3, 100_000, accessibleName=tr("Rounds"))
        self.rounds.setToolTip(tr("How often each target is called, in turn with the baseline"))
        self.rounds.setKeyboardTracking(False)
        self.rounds.valueChanged.connect(lambda value: self._set(rounds=value))
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setColumnStretch(1, 1)
        lines = ((tr("Device"), self.device), (tr("Threads"), self.threads), (tr("Rounds"), self.rounds))
        for at, (text, control) in enumerate(lines):
            name = QLabel(text)
            name.setBuddy(control)
            grid.addWidget(name, 2 * at, 0)
            grid.addWidget(control, 2 * at, 1)
        grid.addWidget(self._device_note, 1, 1)
        self.more = RecordForm(session, MEASURE_FIELDS)
        self.decode = RecordForm(session, DECODE_FIELDS)
        self.decode_part = Section(session, "Decoding", lambda: self.decode, is_open=False)
        self.decode_part.opened.connect(lambda: self.decode.update_from(session.document))
        grid.addWidget(self.more, 2 * len(lines), 0, 1, 2)
        grid.addWidget(self.decode_part, 2 * len(lines) + 1, 0, 1, 2)

    def update_from(self, document: Document) -> None:
        """Show the choices, and which devices there are."""
        measure = document.recipe.measure
        with quiet(self.device, self.threads, self.rounds):
            self.device.setCurrentIndex(max(0, self.device.findData(measure.device)))
            self.threads.setValue(self.threads.valueFromText(str(measure.threads)))
            self.rounds.setValue(measure.rounds)
        reason = _no_cuda(document.environment)
        grey_out(self.device, {"cuda": Offer(is_possible=not reason, why_not={"": reason})})
        show_words(self._device_note, f"CUDA: {reason}" if reason else "")
        self.more.update_from(document)
        self.decode.update_from(document)
        self.decode_part.say(summary_of(DECODE_FIELDS, document) or tr("not a decoder step"))

    def _set(self, **values: object) -> None:
        measure: MeasureChoice = replace(self._session.document.recipe.measure, **values)
        self._session.choices.set_measure(measure)


def measure_words(document: Document) -> str:
    """The choices in a few words."""
    measure = document.recipe.measure
    more = summary_of((*MEASURE_FIELDS, *DECODE_FIELDS), document)
    return ", ".join(
        part
        for part in (
            tr(
                "{device}, threads {threads}, {rounds}",
                device=measure.device,
                threads=measure.threads,
                rounds=plural(measure.rounds, "round"),
            ),
            more,
        )
        if part
    )


def _no_cuda(environment: EnvironmentReport | None) -> str:
    """Why there is no CUDA device; empty if there is one, or if it is not known yet."""
    if environment is None:
        return ""
    found = [device for device in environment.devices if device.name.startswith("cuda")]
    if any(device.available for device in found):
        return ""
    return found[0].reason if found else tr("torch sees no CUDA device here")
