"""Which precisions can be chosen for ops, and why not the others; and the menus that offer them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QMenu

from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.ops.facts import row_of_ops
from ace_studio.gui.style import tr
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.steps import why_fixed
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.messages import TargetReport
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.session.document import Document
from ace_studio.session.plan_rules import op_match, type_match
from ace_studio.session.run_preview import AUTO, chosen_reports
from ace_studio.session.session import Session


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


Choose = Callable[[Precision | None], object]


def fill_precisions(menu: QMenu, offers: Mapping[str, Offer], choose: Choose) -> None:
    """Add an entry per precision, disabled with its reason if no target supports it, and one that clears."""
    menu.setToolTipsVisible(True)
    for each in Precision:
        action = menu.addAction(str(each))
        offer = offers.get(str(each), Offer())
        action.setEnabled(offer.is_possible)
        action.setToolTip(offer.words or str(each))
        action.triggered.connect(lambda _=False, to=each: choose(to))
    menu.addSeparator()
    menu.addAction(tr("as the plan says")).triggered.connect(lambda _=False: choose(None))


def add_precision_menus(menu: QMenu, session: Session, op_ids: Sequence[str]) -> None:
    """Submenus for the selected ops: these very ops, every op of the operator, of the class, of the module."""
    document = session.document
    kinds = _kinds(document, op_ids)
    if not kinds:
        return
    menu.addSeparator()
    menu.setToolTipsVisible(True)
    for title, choose, about in (*_own(session, op_ids), *_shared(session, kinds, op_ids)):
        inner = menu.addMenu(title)
        fill_precisions(inner, op_offers(document, about), choose)
        inner.setEnabled(document.read_only is None)
        inner.menuAction().setToolTip(why_fixed(document) or title)


def _own(session: Session, op_ids: Sequence[str]) -> list[tuple[str, Choose, Sequence[str]]]:
    words = (
        tr("Precision of {op_ids}", op_ids=op_ids[0])
        if len(op_ids) == 1
        else tr("Precision of {ops}", ops=plural(len(op_ids), "op"))
    )
    return [(words, lambda precision: session.plan.set_precision_of_ops(op_ids, precision), op_ids)]


def _shared(
    session: Session, kinds: Sequence[tuple[str, str, str]], op_ids: Sequence[str]
) -> list[tuple[str, Choose, Sequence[str]]]:
    """Entries for what the selected ops share (operator, class, module), with the ops that decide what is possible."""
    found: list[tuple[str, Choose, Sequence[str]]] = []
    operators, types, modules = ({one[at] for one in kinds} for at in range(3))
    for names, words, match in ((operators, "every {}", op_match), (types, "every op in {}", type_match)):
        name = next(iter(names))
        if len(names) == 1 and name:
            about = op_ids if match is op_match else ()
            found.append(
                (
                    tr("Precision of {format}", format=words.format(short_op(name))),
                    _by_rule(session, match(name)),
                    about,
                )
            )
    path = next(iter(modules))
    if len(modules) == 1 and path:
        found.append(
            (
                tr("Precision of module {path}", path=path),
                lambda precision: session.plan.set_precision_of_module(path, precision),
                (),
            )
        )
    return found


def _by_rule(session: Session, match: str) -> Choose:
    return lambda precision: session.plan.set_rule(match, precision) if precision else session.plan.remove_rule(match)


def _kinds(document: Document, op_ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Operator, class of the module and module of each op."""
    graph = document.graph
    if graph is None:
        return []
    rows, types = row_of_ops(graph), dict(zip(graph.module_paths, graph.module_types, strict=True))
    places = [rows[op_id] for op_id in op_ids if op_id in rows]
    return [
        (graph.op[at], types.get(graph.module[at], "" if graph.module[at] else graph.name), graph.module[at])
        for at in places
        if graph.kind[at] is OpKind.OP
    ]
