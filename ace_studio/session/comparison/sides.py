"""The two sides of a comparison: what is remembered of each, what is known of it, and what differs between them."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureReport, OpReport, Result, ResultStatus, TargetRun
from ace_studio.session.comparison.figures import ComparedRow, RecipeChange, compared_rows, recipe_changes
from ace_studio.session.comparison.graphs import MergedGraph, OpChange, merged_graph, op_changes

NAMES = ("A", "B")
T = TypeVar("T")
Two = tuple[T, T]


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of one side: a run of the history, a result file, choices with their capture, or a capture."""

    name: str
    """In words, for a person."""
    run_id: int = 0
    """In the history; 0 if it is none of these."""
    path: str = ""
    """A ``result.json`` or a recipe."""
    row: int | None = None
    """Index of the one result row that is meant; None for the whole run."""
    recipe_toml: str = ""
    """Choices without a run."""
    fingerprint: str = ""
    """Of the graph that was captured with them; empty if none was."""


class PinnedSide(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One side, as far as it is known."""

    recipe: Recipe | None = None
    graph: GraphTable | None = None
    sources: dict[str, str] = {}
    capture: CaptureReport | None = None
    """How the graph was captured, also without a run."""
    result: Result | None = None
    folder: str = ""

    def of_row(self, row: int | None) -> PinnedSide:
        """Only this result row of it; the whole for None."""
        if self.result is None or row is None or row >= len(self.result.runs):
            return self
        return replace(self, result=replace(self.result, runs=(self.result.runs[row],), chosen=0))


class ComparedOps(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The ops of the merged graph in two runs."""

    changes: tuple[OpChange, ...]
    """Of each row."""
    precisions: Two[dict[str, str]]
    """Op id -> precision or fate as read back, or the precision as planned where a side has no run."""
    reports: Two[dict[str, OpReport]]
    noise: float = 0.0
    """Times of ops that differ by less than this fraction differ by less than the runs themselves spread."""


class PinnedPair(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A beside B. Runs of A come first in `runs`; their ops have the ids of the merged graph."""

    pins: Two[Pin]
    sides: Two[PinnedSide]
    merged: MergedGraph | None = None
    """None if no side has a graph that is known."""
    runs: tuple[TargetRun, ...] = ()
    rows: tuple[ComparedRow, ...] = ()
    """Indices of runs point into `runs`."""
    changes: tuple[RecipeChange, ...] = ()

    def partners(self, run: int | None) -> Two[TargetRun | None]:
        """The runs of A and of B that a run is compared in; without a run, those that the jobs chose."""
        chosen = [side.result.chosen if side.result else None for side in self.sides]
        pair = (chosen[0], None if chosen[1] is None else chosen[1] + self.run_count)
        if run is not None:
            pair = next((row.runs for row in self.rows if run in row.runs), pair)
        found = [None if at is None else self.runs[at] for at in pair]
        return found[0], found[1]

    @property
    def run_count(self) -> int:
        """How many of `runs` are of A."""
        result = self.sides[0].result
        return len(result.runs) if result else 0

    def side_of(self, run: int) -> int:
        """0 for a run of A, 1 for one of B."""
        return int(run >= self.run_count)


def comparison_of(pins: Two[Pin], sides: Two[PinnedSide]) -> PinnedPair:
    """What differs between the two sides. A graph that only one side has is shown as it is."""
    first, second = sides
    one, other = first.graph or second.graph, second.graph or first.graph
    merged = None if one is None or other is None else merged_graph(one, other)
    results = [side.result or Result(status=ResultStatus.OK, fingerprint="", environment={}) for side in sides]
    ids = merged.first_ids if merged else {}
    renamed = tuple(_with_ids(run, ids) for run in results[0].runs)
    count = len(renamed)
    rows = tuple(
        replace(row, runs=(row.runs[0], None if row.runs[1] is None else row.runs[1] + count))
        for row in compared_rows(*results)
    )
    changes = recipe_changes(first.recipe, second.recipe) if first.recipe and second.recipe else ()
    return PinnedPair(
        pins=pins, sides=sides, merged=merged, runs=(*renamed, *results[1].runs), rows=rows, changes=changes
    )


@kept_by_identity
def compared_ops(comparison: PinnedPair, first: TargetRun | None, second: TargetRun | None) -> ComparedOps:
    """The ops in two runs, of A and of B; empty without a graph."""
    merged, sides = comparison.merged, comparison.sides
    if merged is None:
        return ComparedOps(changes=(), precisions=({}, {}), reports=({}, {}))
    reports = tuple({op.id: op for op in run.ops} if run else {} for run in (first, second))
    has_both = all(reports)
    one, other = merged.graphs
    planned = (_planned(one, sides[0].recipe, merged.first_ids), _planned(other, sides[1].recipe, {}))
    precisions = tuple(
        plan | {op_id: op.actual if has_both else op.planned for op_id, op in side.items() if op.actual or op.planned}
        for plan, side in zip(planned, reports, strict=True)
    )
    spreads = [(run.latency_ms.p90 - run.latency_ms.p10) / run.latency_ms.p50
               for run in (first, second) if run and run.latency_ms and run.latency_ms.p50]  # fmt: skip
    two = precisions[0], precisions[1]
    return ComparedOps(
        changes=op_changes(merged, two),
        precisions=two,
        reports=(reports[0], reports[1]),
        noise=max(spreads, default=0.0),
    )


def _planned(graph: GraphTable, recipe: Recipe | None, ids: dict[str, str]) -> dict[str, str]:
    """Op id in the merged graph -> precision of the plan; empty if the plan is found from a goal."""
    if recipe is None or recipe.plan.from_goal:
        return {}
    index = plan_index(graph)
    found = index.precisions(recipe.plan)
    return {ids.get(graph.op_id[row], graph.op_id[row]): str(found[row]) for row in index.rows}


def _with_ids(run: TargetRun, ids: dict[str, str]) -> TargetRun:
    ops = (replace(op, id=ids.get(op.id, op.id), fused_into=ids.get(op.fused_into, op.fused_into)) for op in run.ops)
    return replace(run, ops=tuple(ops))
