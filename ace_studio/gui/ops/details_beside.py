"""The details of an op in A beside those in B: what both say is one line, what differs is a line of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ace_studio.gui.ops.details import Detail, Group
from ace_studio.gui.words.formatting import NOTHING
from ace_studio.session.comparison.sides import NAMES, PinnedPair
from ace_studio.session.document import Document, Selection


def details_beside(document: Document, details_of: Callable[[Document], tuple[Group, ...]]) -> tuple[Group, ...]:
    """The groups of both sides about the selected ops. ``details_of`` gives those of one."""
    found = document.comparison
    if found is None or found.merged is None:
        return ()
    first, second = (details_of(_document_of(document, found, side)) for side in (0, 1))
    titles = dict.fromkeys(group.title for group in (*first, *second))
    lines = [{group.title: group.lines for group in groups} for groups in (first, second)]
    return tuple(Group(title, tuple(_beside(*(side.get(title, ()) for side in lines)))) for title in titles)


def _document_of(document: Document, found: PinnedPair, side: int) -> Document:
    """One side as a document of its own, with its own ids and the selected ops."""
    own, merged = found.sides[side], found.merged
    graphs = found.sides[0].graph or found.sides[1].graph, found.sides[1].graph or found.sides[0].graph
    if own.graph is None or merged is None or graphs[0] is None or graphs[1] is None:
        return replace(document, comparison=None, graph=None)
    op_ids = merged.ids((graphs[0], graphs[1]), document.selection.op_ids)[side]
    run = found.partners(document.selection.run)[side]
    at = None if run is None else next(at for at, each in enumerate(found.runs) if each is run) - side * found.run_count
    return replace(
        document,
        comparison=None,
        graph=own.graph,
        recipe=own.recipe or document.recipe,
        runs=own.result.runs if own.result else (),
        result=own.result,
        selection=Selection(op_ids=op_ids, run=at),
    )


def _beside(first: Sequence[Detail], second: Sequence[Detail]) -> Iterator[Detail]:
    one, other = _by_key(first), _by_key(second)
    for key in {**one, **other}:
        mine, theirs = one.get(key), other.get(key)
        if mine is not None and theirs is not None and mine.value == theirs.value:
            yield theirs
        else:
            for at, (name, line) in enumerate(zip(NAMES, (mine, theirs), strict=True)):
                yield Detail("" if at else key[0], f"{name}: {line.value if line else NOTHING}")


def _by_key(lines: Sequence[Detail]) -> dict[tuple[str, int], Detail]:
    """Name of a line, and how many lines of that name come before it -> the line."""
    found: dict[tuple[str, int], Detail] = {}
    for line in lines:
        found[line.name, sum(name == line.name for name, _ in found)] = line
    return found
