"""Which precisions the chosen targets support, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox

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
    words: str = ""
    """Which targets do not, and why; a line each."""


def precision_offers(document: Document) -> dict[str, Offer]:
    """Precision -> whether it is possible."""
    reports = chosen_reports(document)
    return {str(each): _offer(reports, str(each)) for each in Precision}


def _offer(reports: Iterable[TargetReport], precision: str) -> Offer:
    known = list(reports)
    refused = [one for one in known if one.precisions.get(precision)]
    words = "\n".join(f"{one.name}: {one.precisions[precision]}" for one in refused)
    return Offer(is_possible=not known or len(refused) < len(known), words=words)


def op_offers(document: Document, op_ids: Iterable[str]) -> dict[str, Offer]:
    """Precision -> whether it is possible for these ops: for at least one of them, in at least one chosen target."""
    offers = precision_offers(document)
    operators = _operators(document, op_ids)
    reports = chosen_reports(document)
    if not operators or not reports:
        return offers
    refused = {one.target: one.operators for one in document.refusals}
    return {
        precision: _op_offer(
            {one.name: _why_not(one, precision, operators, refused.get(one.name, {})) for one in reports}
        )
        for precision in offers
    }


def _operators(document: Document, op_ids: Iterable[str]) -> tuple[str, ...]:
    return _operators_of(document.graph, tuple(op_ids)) if document.graph is not None else ()


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


def _op_offer(why_not: Mapping[str, str]) -> Offer:
    words = "\n".join(f"{target}: {why}" for target, why in why_not.items() if why)
    return Offer(is_possible=not all(why_not.values()), words=words)


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
    head = "" if offer.is_possible else "None of the chosen targets supports this.\n"
    return head + offer.words
