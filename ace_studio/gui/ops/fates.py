"""The fate of every op in a run: as planned, at another precision, fused, folded, gone or unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ace_studio.gui.style.language import tr
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.records.results import OpReport, TargetRun


class Fate(StrEnum):
    """The fate of an op."""

    AS_PLANNED = tr("as planned")
    OTHERWISE = tr("at another precision")
    """It runs, but not at the precision that was planned."""
    FUSED = tr("fused")
    """Computed inside the kernel of another op."""
    FOLDED = tr("folded")
    """Merged into weights or constants before the first call; it does not run."""
    GONE = tr("gone")
    """The run's graph has no such op."""
    UNKNOWN = tr("unknown")
    """The runtime does not report it."""


@dataclass(frozen=True, kw_only=True)
class OpFate:
    """The fate of one op, with details."""

    fate: Fate
    into: str = ""
    """Id of the op that it was fused or folded into; empty if none or unknown."""
    words: str = ""
    """For a person."""


_HOST = re.compile(r"(?:kernel of|folded into|fused into|part of|absorbed by|inside) ([A-Za-z_][\w.@-]*)")
_BY_ACTUAL = {"fused": Fate.FUSED, "folded": Fate.FOLDED, "unknown": Fate.UNKNOWN, "": Fate.UNKNOWN}


@kept_by_identity
def reports_by_op(run: TargetRun) -> Mapping[str, OpReport]:
    """Op id -> its report in a run."""
    return {report.id: report for report in run.ops}


@kept_by_identity
def fates_of(graph: GraphTable, run: TargetRun) -> Mapping[str, OpFate]:
    """The fate of every op of the graph in a run; empty for a run that reports no ops."""
    return _Fates(graph, run) if run.ops else {}


class _Fates(Mapping[str, OpFate]):
    """Op id -> fate, found when it is asked for: most of 50,000 are never looked at."""

    def __init__(self, graph: GraphTable, run: TargetRun) -> None:
        self._rows = plan_index(graph).row_of_id
        self._ids = frozenset(graph.op_id)
        self._reports = reports_by_op(run)
        self._found: dict[str, OpFate] = {}

    def __getitem__(self, op_id: str) -> OpFate:
        if op_id not in self._found and op_id in self._rows:
            self._found[op_id] = _fate(self._reports.get(op_id), self._ids)
        return self._found[op_id]

    def __contains__(self, op_id: object) -> bool:
        return op_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _fate(report: OpReport | None, ids: frozenset[str]) -> OpFate:
    if report is None:
        return OpFate(fate=Fate.GONE, words=tr("gone: no part of the built model comes from it"))
    usual = Fate.AS_PLANNED if report.actual == report.planned else Fate.OTHERWISE
    fate = _BY_ACTUAL.get(report.actual, usual)
    into = (report.fused_into or _host(report, ids)) if fate in {Fate.FUSED, Fate.FOLDED} else ""
    return OpFate(fate=fate, into=into, words=_words(fate, report, into))


def _host(report: OpReport, ids: frozenset[str]) -> str:
    """The op that is named in the reason."""
    named = [name for name in _HOST.findall(report.reason) if name in ids and name != report.id]
    return named[-1] if named else ""


def _words(fate: Fate, report: OpReport, into: str) -> str:
    match fate:
        case Fate.FUSED:
            return tr("fused into {into}", into=into) if into else tr("fused: no kernel of its own")
        case Fate.FOLDED:
            return tr("folded into {into}", into=into) if into else tr("folded into constants")
        case Fate.OTHERWISE:
            return tr("{actual} instead of {planned}", actual=report.actual, planned=report.planned)
        case Fate.UNKNOWN:
            return tr("the runtime does not report it")
        case _:
            return tr("{actual}, as planned", actual=report.actual)


def running_precisions(fates: Mapping[str, OpFate], run: TargetRun) -> dict[str, str]:
    """Op id -> actual precision; a fused op has that of its host."""
    actual = {report.id: report.actual for report in run.ops}
    found: dict[str, str] = {}
    for op_id in fates:
        home, seen = op_id, {op_id}
        while home in fates and fates[home].into and fates[home].into not in seen:
            home = fates[home].into
            seen.add(home)
        if home in fates and fates[home].fate in {Fate.AS_PLANNED, Fate.OTHERWISE}:
            found[op_id] = actual[home]
    return found


@dataclass(frozen=True, kw_only=True)
class Transition:
    """All edges from ops of one precision to ops of another."""

    source: str
    target: str
    pairs: tuple[tuple[str, str], ...]
    """The edges themselves, by the ids of their ends."""

    @property
    def edges(self) -> int:
        """How many edges."""
        return len(self.pairs)


def transitions(graph: GraphTable, precisions: Mapping[str, str]) -> list[Transition]:
    """Edges counted by the precisions of producer and consumer; edges at ops without one are left out."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for source, target in zip(graph.edge_source, graph.edge_target, strict=True):
        if graph.kind[source] is not OpKind.OP or graph.kind[target] is not OpKind.OP:
            continue
        pair = precisions.get(graph.op_id[source], ""), precisions.get(graph.op_id[target], "")
        if all(pair):
            found.setdefault(pair, []).append((source, target))
    return [
        Transition(
            source=one,
            target=other,
            pairs=tuple((graph.op_id[source], graph.op_id[target]) for source, target in edges),
        )
        for (one, other), edges in found.items()
    ]
