"""The card of one tried fix: its result, its change, and buttons to copy, save or add it."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QApplication, QFileDialog, QFrame, QLabel, QPushButton, QWidget

from ace_studio.gui.panels.breaks.diff_view import DiffView
from ace_studio.gui.style import Theme, stroke_pixmap, told, tr
from ace_studio.gui.widgets.layouts import HAIR, MARGIN, TIGHT, Flow, column, row
from ace_studio.gui.widgets.small import button, label, selectable
from ace_studio.gui.words.formatting import plural, seconds_text, sentence
from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.fixes import CaptureOutcome, FixReport, FixStatus
from ace_studio.records.safe_file import write_atomically
from ace_studio.session.session import Session

STATUS_WORDS: dict[FixStatus, tuple[str, str, str]] = {
    FixStatus.GREEN: (tr("Works"), "good", "good"),
    FixStatus.NO_EFFECT: (tr("No effect: the break is still there"), "info", "dim"),
    FixStatus.FAILED: (tr("Could not be traced or run"), "bad", "bad"),
    FixStatus.WRONG: (tr("Traced, but not equal to eager"), "bad", "bad"),
}
"""Status -> words, icon, role."""


def outcome_text(outcome: CaptureOutcome) -> str:
    """A capture in a few words."""
    if not outcome.rung:
        return tr("nothing captured")
    left = tr(", {ops} left eager", ops=plural(outcome.ops_left_eager, "op")) if outcome.ops_left_eager else ""
    breaks = plural(outcome.breaks, "break") if outcome.breaks else tr("no breaks")
    return tr(
        "{breaks}, {ops} captured{left} ({rung})",
        breaks=breaks,
        ops=plural(outcome.ops, "op"),
        left=left,
        rung=outcome.rung,
    )


class FixCard(QFrame):
    """A card about one fix."""

    def __init__(self, fix: FixReport, session: Session, theme: Theme) -> None:
        """A fix never changes, so the card is never updated."""
        super().__init__()
        self.fix = fix
        self._session = session
        words, icon, role = STATUS_WORDS[fix.status]
        colours = theme.colours
        picture = QLabel()
        colour = {"good": colours.good, "bad": colours.bad}.get(role, colours.text_dim)
        picture.setPixmap(stroke_pixmap(icon, colour, size=18, pixel_ratio=self.devicePixelRatioF()))
        title = label(sentence(fix.title[:1].upper() + fix.title[1:]).rstrip("."), strong=True)
        head = row(picture, column(title, label(words, role), gap=HAIR), stretch=1)
        self.setProperty("role", "card")
        self.setAccessibleName(f"{fix.title}: {words}")
        layout = column(margin=MARGIN, gap=TIGHT)
        layout.addLayout(head)
        for text in self._facts():
            layout.addWidget(selectable(label(text, "dim")))
        if fix.note:
            layout.addWidget(label(sentence(fix.note), "warn"))
        self.diff = DiffView(theme, fix.patch) if fix.patch else None
        if self.diff is not None and fix.status is not FixStatus.GREEN:
            self.diff.hide()
        self.buttons = self._buttons()
        if self.buttons:
            layout.addLayout(Flow(*self.buttons))
        if self.diff is not None:  # it may be long: what to do with it comes first
            layout.addWidget(self.diff)
        self.setLayout(layout)

    def _facts(self) -> list[str]:
        fix = self.fix
        facts = []
        if fix.status is FixStatus.GREEN or fix.after.rung:
            facts.append(
                tr("Before: {before}. After: {after}.", before=outcome_text(fix.before), after=outcome_text(fix.after))
            )
        if fix.inputs_compared:
            inputs, seconds = plural(fix.inputs_compared, "input"), seconds_text(fix.seconds)
            facts.append(
                tr("Compared with eager on {inputs}; took {seconds}.", inputs=inputs, seconds=seconds)
                if fix.status is FixStatus.WRONG
                else tr("Equal to eager on {inputs}; took {seconds}.", inputs=inputs, seconds=seconds)
            )
        if fix.problem is not None:
            facts.append(" ".join(sentence(told(part)) for part in (fix.problem.what, fix.problem.why) if part))
        return facts

    def _buttons(self) -> tuple[QWidget, ...]:
        made: list[QPushButton] = []
        if self.fix.control is not None and self.fix.status is FixStatus.GREEN:
            made.append(self._add_button())
        document = self._session.document
        source = Path(document.folder) / document.recipe.model.source
        if self.diff is not None and self.fix.status is FixStatus.GREEN and Path(self.fix.file) == source:
            tip = tr(
                "Writes a copy of {name} with this change, and traces it. Undo goes back to {name}", name=source.name
            )
            open_copy: Callable[[], object] = lambda: self._session.jobs.open_patched_copy(self.fix)  # noqa: E731
            made.append(button(tr("Apply to a copy"), open_copy, role="primary", tip=tip))
        if self.diff is not None:
            made.append(button(tr("Show or hide the change"), self._toggle_diff))
            made.append(button(tr("Copy patch"), lambda: QApplication.clipboard().setText(self.fix.patch)))
            made.append(button(tr("Save patch…"), self._save_patch, tip=tr("Your file stays as it is")))
        for each in made:
            each.setAccessibleDescription(self.fix.title)
        return tuple(made)

    def _add_button(self) -> QPushButton:
        is_there = self.fix.control in self._session.document.recipe.capture.controls
        apply: Callable[[], object] = lambda: self._session.choices.apply_fix(self.fix)  # noqa: E731 - handed on
        made = button(
            tr("In the recipe") if is_there else tr("Add to recipe"), apply, role="" if is_there else "primary"
        )
        made.setEnabled(not is_there)
        made.setToolTip(
            tr("It is a control of the capture")
            if is_there
            else tr("Adds the control to the recipe; trace again to use it. Undo removes it")
        )
        return made

    def _toggle_diff(self) -> None:
        if self.diff is not None:
            self.diff.setVisible(self.diff.isHidden())

    def _save_patch(self) -> None:
        # Paths in the patch are relative to the folder of the recipe.
        name = f"{Path(self.fix.file).stem}-{self.fix.kind}.patch"
        suggestion = str(Path(self._session.document.folder) / name)
        path, _ = QFileDialog.getSaveFileName(self, tr("Save the patch"), suggestion, tr("Patches (*.patch *.diff)"))
        if not path:
            return
        what, remedy = tr("The patch could not be saved"), tr("Choose a folder that you may write to")
        with self._session.reporting(), explained(ErrorCode.NOT_FOUND, what, remedy=remedy, where=path):
            write_atomically(Path(path), self.fix.patch.encode())
