"""Which precisions the chosen targets support, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox

from ace_studio.gui.style import tr
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.session.document import Document
from ace_studio.session.run_preview import AUTO, chosen_reports


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One precision as the chosen targets see it."""

    is_possible: bool = True
    """Whether at least one target supports it."""
    why_not: Mapping[str, str] = field(default_factory=dict)
    """Why a target does not support it; an empty name if no target is meant."""

    @property
    def words(self) -> str:
        """Which targets do not, and why; a line each."""
        return "\n".join(f"{target}: {why}".removeprefix(": ") for target, why in self.why_not.items())


def precision_offers(document: Document) -> dict[str, Offer]:
    """Precision -> whether it is possible."""
    reports = chosen_reports(document)
    return {str(each): _offer({one.name: one.precisions.get(each, "") for one in reports}) for each in Precision}


def _offer(answers: Mapping[str, str]) -> Offer:
    """The offer of targets, each of which says why it does not support a precision, or nothing if it does."""
    why_not = {target: why for target, why in answers.items() if why}
    return Offer(is_possible=not answers or len(why_not) < len(answers), why_not=why_not)


def op_offers(document: Document, op_ids: Iterable[str]) -> dict[str, Offer]:
    """Precision -> whether it is possible for these ops: for at least one of them, in at least one chosen target."""
    offers = precision_offers(document)
    operators = _operators_of(document.graph, tuple(op_ids)) if document.graph is not None else ()
    reports = chosen_reports(document)
    if not operators or not reports:
        return offers
    refused = {one.target: one.operators for one in document.refusals}
    return {
        precision: _offer({one.name: _why_not(one, precision, operators, refused.get(one.name, {})) for one in reports})
        for precision in offers
    }


@kept_by_identity
def _operators_of(graph: GraphTable, op_ids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(graph.op.__getitem__, plan_index(graph).rows_of_ops(op_ids))))


def _why_not(
    report: TargetReport, precision: str, operators: Sequence[str], refused: Mapping[str, Mapping[str, str]]
) -> str:
    """Why a target supports a precision for none of these operators; empty if it does for one."""
    words = report.precisions.get(precision, "")
    if words:
        return words
    reasons = [refused.get(operator, {}).get(precision, "") for operator in operators]
    return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""


def grey_out(combo: QComboBox, offers: Mapping[str, Offer]) -> None:
    """Disable the rows of a combo box that are not possible; each tooltip says why.

    The present choice stays, so that a recipe from elsewhere is shown unchanged.
    """
    model = combo.model()
    if not isinstance(model, QStandardItemModel):
        return
    for at in range(combo.count()):
        offer = offers.get(str(combo.itemData(at)), Offer())
        item = model.item(at)
        item.setEnabled(offer.is_possible)
        item.setToolTip(offer.words)


def warning_for(offers: Mapping[str, Offer], precision: str, document: Document) -> str:
    """The warning below a choice that not every target supports; empty if all do.

    With ``auto``, a target that does not support it is left out without a warning.
    """
    offer = offers.get(precision, Offer())
    if not offer.words or (offer.is_possible and AUTO in document.recipe.targets.names):
        return ""
    head = "" if offer.is_possible else tr("None of the chosen targets supports this.\n")
    return head + offer.words
