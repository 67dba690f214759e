"""Precisions in context menus: for the selected ops, for all ops of their kind, and for whole modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtWidgets import QMenu

from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.ops.facts import row_of_ops
from ace_studio.gui.ops.precision_offers import Offer, op_offers
from ace_studio.gui.style import tr
from ace_studio.gui.words.formatting import plural
from ace_studio.gui.words.steps import why_fixed
from ace_studio.records.graph import OpKind
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import Document
from ace_studio.session.plan_rules import op_match, type_match
from ace_studio.session.session import Session

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
