"""Facts about every op: the plan's precision, and its fate in the selected run: as planned, fused, folded or gone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from ace_studio.gui.style import tr
from ace_studio.gui.widgets.table_model import Computed
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.families import family_of_graph
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.plan_index import PlanIndex, plan_index
from ace_studio.records.results import CaptureReport, OpReport, OpSensitivity, Result, TargetRun
from ace_studio.session.comparison.sides import ComparedOps, compared_ops
from ace_studio.session.document import Document
from ace_studio.session.sensitivity import known_sensitivity, sensitivity_by_op


class RowTexts(Mapping[str, str]):
    """Op id -> text, kept by row: a dictionary of 50,000 ops would take longer to make than a gesture may."""

    def __init__(self, index: PlanIndex, choices: Sequence[str], chosen: Sequence[int]) -> None:
        """[rows] ``chosen``: which of the ``choices`` each row has; inputs, outputs and breaks have an empty text."""
        self._index, self._choices, self._chosen = index, choices, chosen
        self._rows = index.row_of_id

    @cached_property
    def texts(self) -> Sequence[str]:
        """[rows] The text of each row."""
        made = list(map(self._choices.__getitem__, self._chosen))
        for row in self._index.other_rows:
            made[row] = ""
        return made

    def __getitem__(self, op_id: str) -> str:
        return self._choices[self._chosen[self._rows[op_id]]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True, kw_only=True)
class OpFacts:
    """Per-op facts beside the graph table. Ids that are missing are not known."""

    planned: Mapping[str, str] = field(default_factory=dict)
    """Op id -> precision of the plan, or of the selected run's plan."""
    planned_by: Mapping[str, str] = field(default_factory=dict)
    """Op id -> the rule or default that decided."""
    reports: Mapping[str, OpReport] = field(default_factory=dict)
    """Op id -> report of the selected run."""
    fates: Mapping[str, OpFate] = field(default_factory=dict)
    """Op id -> its fate in the selected run."""
    sensitivity: Mapping[str, float] = field(default_factory=dict)
    """Op id -> dB of the outputs if only this op is compressed."""
    support: Mapping[str, str] = field(default_factory=dict)
    """Op id -> targets without this op, and what they do instead."""
    run: TargetRun | None = None
    compared: ComparedOps | None = None
    """The ops in A and in B, while these are compared."""


_NOTHING = OpFacts()


def selected_run(document: Document) -> TargetRun | None:
    """The selected run; without a selection, the run that the engine chose."""
    index = document.selection.run
    if index is None and document.result is not None:
        index = document.result.chosen
    return document.runs[index] if index is not None and index < len(document.runs) else None


def op_facts(document: Document) -> OpFacts:
    """The facts of the document's ops, cached for the same document."""
    graph, sensitivity = document.graph, known_sensitivity(document)
    if graph is None:
        return _NOTHING
    found = document.comparison
    compared = None if found is None else compared_ops(found, *found.partners(document.selection.run))
    return _facts(graph, document.recipe.plan, selected_run(document), sensitivity, document.capture, compared)


@kept_by_identity
def _facts(
    graph: GraphTable,
    plan: Plan,
    run: TargetRun | None,
    sensitivity: tuple[OpSensitivity, ...],
    capture: CaptureReport | None,
    compared: ComparedOps | None,
) -> OpFacts:
    reports = reports_by_op(run) if run is not None else {}
    if plan.from_goal:
        # With a goal, the search makes the plan during the run: take the plan of the selected run.
        planned: Mapping[str, str] = {op_id: report.planned for op_id, report in reports.items() if report.planned}
        planned_by: Mapping[str, str] = dict.fromkeys(planned, tr("found from the goal"))
    else:
        planned, planned_by = _planned(graph, plan)
    return OpFacts(
        planned=planned,
        planned_by=planned_by,
        reports=reports,
        fates=fates_of(graph, run) if run is not None else {},
        sensitivity=_sensitivity(sensitivity),
        support=_support(capture),
        run=run,
        compared=compared,
    )


@kept_by_identity
def _sensitivity(found: tuple[OpSensitivity, ...]) -> Mapping[str, float]:
    return sensitivity_by_op(found)


def _planned(graph: GraphTable, plan: Plan) -> tuple[RowTexts, RowTexts]:
    """The precision of every op, and what decided."""
    index = plan_index(graph)
    deciding = index.deciding(plan)
    precisions = [*(str(rule.precision) for rule in plan.rules), str(plan.default)]

    rules, default = plan.rules, tr("default of the plan")

    def reason(at: int) -> str:
        return tr("rule {match}", match=rules[at].match) if 0 <= at < len(rules) else default

    # Only those that are seen are written: 20,000 sentences would take longer than a gesture may.
    reasons = Computed(len(rules) + 1, reason)
    return RowTexts(index, precisions, deciding), RowTexts(index, reasons, deciding)


def values_of_ops(graph: GraphTable, facts: OpFacts, name: str) -> Sequence[object]:
    """[rows] A figure of every op by its name in a search; None or an empty text where nothing is known.

    Args:
        graph: Its rows.
        facts: What is known of the ops.
        name: ``time`` in ms, ``flops``, ``weights`` and ``output`` in bytes, ``error`` and ``sensitivity`` in dB, or
            ``precision``: the actual one, else the planned one.
    """
    if name in ("flops", "weights", "output"):
        return {"flops": graph.flops, "weights": graph.weight_bytes, "output": graph.output_bytes}[name]
    fields = {"time": "latency_ms", "error": "error_db", "sensitivity": "sensitivity_db", "precision": "actual"}
    found = [getattr(facts.reports.get(op_id), fields[name], None) for op_id in graph.op_id]
    more = facts.planned if name == "precision" else facts.sensitivity if name == "sensitivity" else {}
    return [value or more.get(op_id) for op_id, value in zip(graph.op_id, found, strict=True)] if more else found


def texts_by_row(graph: GraphTable, labels: Mapping[str, str]) -> Sequence[str]:
    """[rows] The text of each op, by its id; empty where there is none."""
    return labels.texts if isinstance(labels, RowTexts) else [labels.get(op_id, "") for op_id in graph.op_id]


def _support(capture: CaptureReport | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for report in capture.support if capture is not None else ():
        for op in report.ops:
            words = f"{report.target}: {op.instead or op.status.value}"
            found[op.id] = f"{found[op.id]}; {words}" if op.id in found else words
    return found


def prepare(graph: GraphTable) -> None:
    """Find what is kept of a graph before a panel asks for it; may be called in another thread."""
    row_of_ops(graph)
    modules_inside(graph)
    family_of_graph(graph)
    index = plan_index(graph)
    _ = index.groups, index.inside, index.row_of_match


def prepare_result(result: Result) -> None:
    """Find what is kept of the runs of a result before a panel asks for it; may be called in another thread."""
    if result.chosen is not None and result.chosen < len(result.runs):
        reports_by_op(result.runs[result.chosen])
    for run in result.runs:
        _ = run.op_precisions
    _sensitivity(result.sensitivity)


@kept_by_identity
def row_of_ops(graph: GraphTable) -> Mapping[str, int]:
    """Op id -> row."""
    return dict(zip(graph.op_id, range(len(graph)), strict=True))


def chosen_precision(document: Document, op_ids: Iterable[str]) -> Precision | Literal["mixed"] | None:
    """The precision that rules set for all of these ops; None if no rule does, ``mixed`` if they differ."""
    if document.graph is None:
        return None
    index, plan = plan_index(document.graph), document.recipe.plan
    rules = set(map(index.deciding(plan).__getitem__, index.rows_of_ops(tuple(op_ids))))
    found = {None if at < 0 else plan.rules[at].precision for at in rules}
    return "mixed" if len(found) > 1 else next(iter(found), None)


@kept_by_identity
def modules_inside(graph: GraphTable) -> Mapping[str, Sequence[str]]:
    """Module -> those directly in it. The root is empty."""
    known, found = set(graph.module_paths), defaultdict(list)
    for path in graph.module_paths:
        parent = path.rpartition(".")[0]
        found[parent if parent in known else ""].append(path)
    return found


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
