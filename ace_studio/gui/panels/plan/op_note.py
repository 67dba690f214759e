"""The note on the selected op: its possible precisions, and which targets refuse the others, and why."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from ace_studio.gui.ops.facts import op_facts
from ace_studio.gui.ops.precision_offers import Offer, op_offers
from ace_studio.gui.style.language import tr
from ace_studio.gui.style.sizes import TIGHT
from ace_studio.gui.widgets.layouts import column
from ace_studio.gui.widgets.small import label, set_role
from ace_studio.gui.words.formatting import plural
from ace_studio.session.document import Document


class OpNote(QWidget):
    """A few lines below the modules; hidden unless a precision is refused for the selected ops."""

    def __init__(self) -> None:
        super().__init__()
        self.words = label("", "dim")
        self.why = QToolButton(autoRaise=True)
        self.why.setCheckable(True)
        self.why.setProperty("role", "fold")
        self.why.toggled.connect(lambda _: self._fold())
        self.reasons = label("", "dim")
        self.reasons.setTextFormat(Qt.TextFormat.RichText)
        self.setLayout(column(self.words, self.why, self.reasons, gap=TIGHT))
        self.hide()

    def update_from(self, document: Document) -> None:
        """Say it of the selected ops."""
        op_ids = document.selection.op_ids
        offers = op_offers(document, op_ids) if op_ids else {}
        refused = {name: offer for name, offer in offers.items() if offer.words}
        self.setVisible(bool(refused))
        if refused:
            named = op_ids[0] if len(op_ids) == 1 else plural(len(op_ids), tr("selected op"))
            possible = ", ".join(name for name, offer in offers.items() if offer.is_possible)
            in_vain = _planned_in_vain(document, offers)
            self.words.setText(
                tr(
                    "{named}: {in_vain}possible: {precisions}.",
                    named=named,
                    in_vain=in_vain,
                    precisions=possible or tr("no precision"),
                )
            )
            set_role(self.words, "warn" if in_vain else "dim")
            self.reasons.setText(reasons_of(refused))
            self._fold()

    def _fold(self) -> None:
        is_open = self.why.isChecked()
        self.why.setText(f"{'▾' if is_open else '▸'}  {tr('What the targets refuse, and why')}")
        self.reasons.setVisible(is_open)


def _planned_in_vain(document: Document, offers: dict[str, Offer]) -> str:
    """A planned precision of the selected ops that no chosen target supports, in words."""
    planned = op_facts(document).planned
    wanted = {planned[op_id] for op_id in document.selection.op_ids if op_id in planned}
    refused = [name for name in sorted(wanted) if name in offers and not offers[name].is_possible]
    return (
        tr(
            "planned at {names}, which no chosen target supports, so it stays in floating point. ",
            names=", ".join(refused),
        )
        if refused
        else ""
    )


def reasons_of(refused: dict[str, Offer]) -> str:
    """A paragraph per precision, a line per reason with the targets that give it; as rich text.

    Precisions that no target supports come first.
    """
    parts = []
    for name, offer in sorted(refused.items(), key=lambda pair: pair[1].is_possible):
        targets: dict[str, list[str]] = {}
        for target, why in offer.why_not.items():
            targets.setdefault(why, []).append(target)
        head = f"<b>{escape(name)}</b>{tr(': other targets can') if offer.is_possible else ''}"
        lines = "".join(
            f"<p style='margin:0 0 2px 12px'>{escape(', '.join(names))}: {escape(why)}</p>"
            for why, names in targets.items()
        )
        parts.append(f"<p style='margin:4px 0 1px 0'>{head}</p>{lines}")
    return "".join(parts)
