"""Facts about every op: the plan's precision, and what the selected run did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ace_studio.gui.ops.fates import OpFate, fates_of
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.records.results import CaptureReport, OpReport, OpSensitivity, TargetRun
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
    graph, sensitivity = document.graph, known_sensitivity(document)
    if graph is None:
        return _NOTHING
    return _facts(graph, document.recipe.plan, selected_run(document), sensitivity, document.capture)


@kept_by_identity
def _facts(
    graph: GraphTable,
    plan: Plan,
    run: TargetRun | None,
    sensitivity: tuple[OpSensitivity, ...],
    capture: CaptureReport | None,
) -> OpFacts:
    reports = {report.id: report for report in run.ops} if run is not None else {}
    if plan.from_goal:
        # With a goal, the search makes the plan during the run: take the plan of the selected run.
        planned = {op_id: report.planned for op_id, report in reports.items() if report.planned}
        planned_by = dict.fromkeys(planned, "found from the goal")
    else:
        planned, planned_by = _planned(graph, plan)
    return OpFacts(
        planned=planned,
        planned_by=planned_by,
        reports=reports,
        fates=fates_of(graph, run) if run is not None else {},
        sensitivity=sensitivity_by_op(sensitivity),
        support=_support(capture),
        run=run,
    )


def _planned(graph: GraphTable, plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Op id -> precision, and what decided; in the order of the graph."""
    index = plan_index(graph)
    op_ids = [graph.op_id[row] for row in index.rows]
    planned, planned_by = dict.fromkeys(op_ids, str(plan.default)), dict.fromkeys(op_ids, "default of the plan")
    words = [(str(rule.precision), f"rule {rule.match}") for rule in plan.rules]
    for row, at in _deciding(graph, plan).items():
        planned[graph.op_id[row]], planned_by[graph.op_id[row]] = words[at]
    return planned, planned_by


def _support(capture: CaptureReport | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for report in capture.support if capture is not None else ():
        for op in report.ops:
            words = f"{report.target}: {op.instead or op.status.value}"
            found[op.id] = f"{found[op.id]}; {words}" if op.id in found else words
    return found


@kept_by_identity
def row_of_ops(graph: GraphTable) -> Mapping[str, int]:
    """Op id -> row."""
    return {op_id: row for row, op_id in enumerate(graph.op_id)}


def chosen_precision(document: Document, op_ids: Iterable[str]) -> Precision | Literal["mixed"] | None:
    """The precision that rules set for all of these ops; None if no rule does, ``mixed`` if they differ."""
    if document.graph is None:
        return None
    index, plan = plan_index(document.graph), document.recipe.plan
    deciding = _deciding(document.graph, plan)
    rules = {deciding.get(row) for op_id in op_ids if (row := index.row_of(op_id)) is not None}
    found = {None if at is None else plan.rules[at].precision for at in rules}
    return "mixed" if len(found) > 1 else next(iter(found), None)


@kept_by_identity
def _deciding(graph: GraphTable, plan: Plan) -> Mapping[int, int]:
    return plan_index(graph).deciding(plan)
