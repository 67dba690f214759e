"""The form for measuring, which holds for every target and the baseline."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from ace_studio.gui.ops.precision_offers import Offer, grey_out
from ace_studio.gui.panels.plan.field_rows import DECODE_FIELDS, MEASURE_FIELDS
from ace_studio.gui.panels.plan.record_form import RecordForm, summary_of
from ace_studio.gui.panels.plan.section import Section
from ace_studio.gui.style.language import tr
from ace_studio.gui.widgets.fields import ComboBox, WholeBox
from ace_studio.gui.widgets.small import label, quiet, show_words
from ace_studio.gui.words.formatting import plural
from ace_studio.records.messages import EnvironmentReport
from ace_studio.records.recipes.recipe import MeasureChoice
from ace_studio.session.document import Document
from ace_studio.session.session import Session

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
