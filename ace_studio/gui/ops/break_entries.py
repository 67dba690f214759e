"""Places where the capture stops, as one list: failures, graph breaks, and subgraphs that stay eager."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from ace_studio.gui.ops.facts import row_of_ops
from ace_studio.gui.style import told, tr
from ace_studio.gui.words.formatting import plural
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.results import CaptureReport, GraphBreak, SubgraphReport
from ace_studio.session.comparison.findings import Beside, beside, place_key
from ace_studio.session.comparison.sides import PinnedPair
from ace_studio.session.document import Document
from ace_studio.session.verbs.view import ViewVerbs

_PLACE = re.compile(r"^(?P<file>.+?):(?P<line>\d+)(?=$|[,:\s])")
_FIXABLE = frozenset({ErrorCode.NOT_CAPTURED, ErrorCode.WRONG_CAPTURE, ErrorCode.UNSUPPORTED, ErrorCode.TIMEOUT})


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One place where capture stops."""

    mark: str
    """Number of the break, name of the subgraph, or ``!`` for the failure of the whole graph."""
    title: str
    """What happened, in one sentence."""
    why: str = ""
    remedy: str = ""
    file: str = ""
    line: int = 0
    module: str = ""
    code: str = ""
    count: int = 1
    ops_left_eager: int = 0
    details: str = ""
    seam: int | None = None
    """Index into the breaks of the capture."""
    subgraph: int | None = None
    """Index into its subgraphs."""
    beside: Beside[Entry] | None = None
    """What it is in A and in B while these are compared."""
    is_fixable: bool = True
    """Whether a fix of the capture may help; not if the model itself does not run."""

    @property
    def is_only_first(self) -> bool:
        """Whether it is of A alone, so that the graph and the breaks of B have no such place."""
        return self.beside is not None and self.beside.second is None

    @property
    def place(self) -> str:
        """File name and line; empty if unknown."""
        return f"{PurePath(self.file.replace(chr(92), '/')).name}:{self.line}" if self.line else ""

    @property
    def is_about_inputs(self) -> bool:
        """Whether the examples of the recipe are at fault."""
        return self.file.lstrip("[").startswith("inputs")

    @property
    def where(self) -> str:
        """The whole path and the line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def heading(self) -> str:
        """A short title of its kind."""
        if self.seam is not None:
            return tr("Break {number}", number=self.mark)
        return tr("Subgraph {mark} stays eager", mark=self.mark) if self.subgraph is not None else tr("Not captured")

    @property
    def cost(self) -> str:
        """How often it is reached, and how many ops stay eager."""
        met = tr("reached {times}", times=plural(self.count, "time")) if self.count > 1 else ""
        left = tr("{ops} left eager", ops=plural(self.ops_left_eager, "op")) if self.ops_left_eager else ""
        return ", ".join(part for part in (met, left) if part)

    def as_text(self) -> str:
        """Everything, for the clipboard."""
        parts = (self.why, self.code.strip(), self.cost, self.remedy and f"→ {self.remedy}", self.where, self.details)
        return "\n".join([f"{self.heading}: {self.title}", *(part for part in parts if part)])


def entries(document: Document) -> tuple[Entry, ...]:
    """All entries of the document: failures, then breaks by number, then subgraphs that stay eager.

    While A and B are compared: those of B, then those that only A has.
    """
    if document.comparison is not None:
        return _compared_entries(document.comparison)
    found = [_of_problem(one, mark="!") for one in (document.failure.problems if document.failure else ())]
    return (*found, *(_of_capture(document.capture) if document.capture is not None else ()))


def _of_capture(capture: CaptureReport) -> list[Entry]:
    found = [_of_break(one, at) for at, one in enumerate(capture.graph_breaks)]
    return found + [_of_subgraph(one, at) for at, one in enumerate(capture.pieces) if one.error is not None]


@kept_by_identity
def _compared_entries(comparison: PinnedPair) -> tuple[Entry, ...]:
    first, second = (None if side.capture is None else _of_capture(side.capture) for side in comparison.sides)
    found = beside(
        first,
        second,
        key=lambda one: place_key(one.file, one.line, code=one.code, module=one.module, reason=one.title),
        parts={"met": lambda one: one.count, "ops eager": lambda one: one.ops_left_eager},
    )
    return tuple(replace(one.shown, beside=one) for one in found)


def chosen_entry(document: Document, offered: Sequence[Entry]) -> Entry | None:
    """The entry at the document's selection."""
    selection = document.selection
    subgraph = _selected_subgraph(document) if any(one.subgraph is not None for one in offered) else -1
    for one in offered:
        if one.is_only_first:
            continue
        if one.seam is not None and one.seam == selection.seam:
            return one
        if one.subgraph is not None and one.subgraph == subgraph:
            return one
        is_failure = one.seam is None and one.subgraph is None and selection.seam is None
        if is_failure and selection.place is not None and is_same_place((one.file, one.line), selection.place):
            return one
    return None


def _selected_subgraph(document: Document) -> int:
    """The subgraph whose ops are exactly the selected ones; -1 if there is none."""
    graph, op_ids = document.graph, document.selection.op_ids
    row = row_of_ops(graph).get(op_ids[0], -1) if graph is not None and graph.piece and op_ids else -1
    if graph is None or row < 0:
        return -1
    subgraph = graph.piece[row]
    is_all = len(op_ids) == graph.piece.count(subgraph) and op_ids == ops_of_subgraph(document, subgraph)
    return subgraph if is_all else -1


def ops_of_subgraph(document: Document, subgraph: int) -> tuple[str, ...]:
    """Ids of the rows of a subgraph."""
    graph = document.graph
    if graph is None or not graph.piece:
        return ()
    return tuple(op_id for op_id, at in zip(graph.op_id, graph.piece, strict=True) if at == subgraph)


def fixes_of(fixes: Sequence[FixReport], entry: Entry) -> tuple[FixReport, ...]:
    """The fixes that were tried for an entry."""
    return tuple(fix for fix in fixes if is_same_place((fix.file, fix.line), (entry.file, entry.line)))


def parse_place(where: str) -> tuple[str, int] | None:
    """``model.py:3, layers.0`` -> file and line; None if it names no line."""
    found = _PLACE.match(where)
    return (found["file"], int(found["line"])) if found else None


def is_same_place(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two places are the same line; one may name its file without the folder."""
    if one[1] != other[1] or not one[1]:
        return False
    short, long = sorted((one[0].replace("\\", "/"), other[0].replace("\\", "/")), key=len)
    return bool(short) and (long == short or long.endswith(f"/{short}"))


def _of_break(one: GraphBreak, at: int) -> Entry:
    return Entry(
        mark=str(at + 1), title=one.reason, remedy=one.hint, file=one.file, line=one.line, module=one.module,
        code=one.code, count=one.count, ops_left_eager=one.ops_left_eager, details=one.details, seam=at,
    )  # fmt: skip


def _of_subgraph(one: SubgraphReport, at: int) -> Entry:
    assert one.error is not None
    entry = _of_problem(one.error, mark=one.name)
    return replace(entry, module=one.module, ops_left_eager=one.ops, subgraph=at, is_fixable=True)


def _of_problem(problem: Problem, *, mark: str) -> Entry:
    file, line = parse_place(problem.where) or (problem.where, 0)
    return Entry(
        mark=mark, title=told(problem.what), why=told(problem.why), remedy=told(problem.remedy), file=file, line=line,
        details=problem.details, is_fixable=problem.code in _FIXABLE,
    )  # fmt: skip


def select_line(entry: Entry, view: ViewVerbs) -> None:
    """Select the place of an entry in the source, and with a break its row in the graph."""
    if entry.seam is not None and not entry.is_only_first:
        view.select_seam(entry.seam)
    else:
        view.select_place(entry.file, entry.line)
