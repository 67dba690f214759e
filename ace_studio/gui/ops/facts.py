"""Facts about every op: the plan's precision, and what the selected run did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ace_studio.gui.ops.fates import OpFate, fates_of
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.plan_index import PlanIndex
from ace_studio.records.results import CaptureReport, OpReport, TargetRun
from ace_studio.session.document import Document
from ace_studio.session.sensitivity import known_sensitivity, sensitivity_by_op


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


_NOTHING = OpFacts()


def selected_run(document: Document) -> TargetRun | None:
    """The selected run; without a selection, the run that the engine chose."""
    index = document.selection.run
    if index is None and document.result is not None:
        index = document.result.chosen
    return document.runs[index] if index is not None and index < len(document.runs) else None


def op_facts(document: Document) -> OpFacts:
    """The facts of the document's ops, cached for the same document."""
    graph = document.graph
    return (
        _NOTHING
        if graph is None
        else _facts(
            _Same(graph),
            _Same(document.recipe.plan),
            _Same(selected_run(document)),
            _Same(known_sensitivity(document)),
            _Same(document.capture),
        )
    )


class _Same:
    """A record compared by identity, so that a cache lookup does not compare 20,000 ops."""

    def __init__(self, record: object) -> None:
        self.record = record

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.record is self.record

    def __hash__(self) -> int:
        return id(self.record)


@lru_cache(maxsize=4)
def _facts(graph: _Same, plan: _Same, run: _Same, sensitivity: _Same, capture: _Same) -> OpFacts:
    table, choices, target = graph.record, plan.record, run.record
    measured = sensitivity.record if isinstance(sensitivity.record, tuple) else ()
    if not isinstance(table, GraphTable) or not isinstance(choices, Plan):
        return _NOTHING
    resolved = plan_index(table).resolve(choices)
    reports = {report.id: report for report in target.ops} if isinstance(target, TargetRun) else {}
    planned = {op.op_id: str(op.precision) for op in resolved}
    planned_by = {op.op_id: op.reason for op in resolved}
    if choices.from_goal:
        # With a goal, the search makes the plan during the run: take the plan of the selected run.
        planned = {op_id: report.planned for op_id, report in reports.items() if report.planned}
        planned_by = dict.fromkeys(planned, "found from the goal")
    return OpFacts(
        planned=planned,
        planned_by=planned_by,
        reports=reports,
        fates=fates_of(table, target) if isinstance(target, TargetRun) else {},
        sensitivity=sensitivity_by_op(measured),
        support=_support(capture.record),
        run=target if isinstance(target, TargetRun) else None,
    )


def _support(capture: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for report in capture.support if isinstance(capture, CaptureReport) else ():
        for op in report.ops:
            words = f"{report.target}: {op.instead or op.status.value}"
            found[op.id] = f"{found[op.id]}; {words}" if op.id in found else words
    return found


@lru_cache(maxsize=2)
def _rows(graph: _Same) -> dict[str, int]:
    table = graph.record
    return {op_id: row for row, op_id in enumerate(table.op_id)} if isinstance(table, GraphTable) else {}


def row_of_ops(graph: GraphTable) -> Mapping[str, int]:
    """Op id -> row."""
    return _rows(_Same(graph))


@lru_cache(maxsize=2)
def _plan_index(graph: _Same) -> PlanIndex:
    table = graph.record
    if not isinstance(table, GraphTable):
        raise TypeError(type(table).__name__)
    return PlanIndex(table)


def plan_index(graph: GraphTable) -> PlanIndex:
    """The index of ops for rules, made once per graph."""
    return _plan_index(_Same(graph))
