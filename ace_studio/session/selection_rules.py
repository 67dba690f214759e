"""Few rules for a selection of ops: whole modules, classes and operators are named instead of every op."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush

from msgspec.structs import replace

from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.plan_index import PlanIndex

_WHOLE_MODEL = "module:*"


def with_precision_of_ops(plan: Plan, index: PlanIndex, op_ids: Sequence[str], precision: Precision | None) -> Plan:
    """The plan with a precision for these ops, appended where it wins. Earlier rules about nothing else go.

    None only removes those. Ids of inputs and outputs are left out.
    """
    rows = frozenset(index.rows_of_ops(tuple(op_ids)))
    matches = covering_matches(index, rows) if precision is not None else ()
    known = frozenset(matches)
    kept = tuple(rule for rule in plan.rules if rule.match not in known and not _is_only_about(index, rule, rows))
    added = tuple(PlanRule(match=match, precision=precision) for match in matches) if precision is not None else ()
    return replace(plan, rules=kept + added, from_goal=plan.from_goal and not added)


def _is_only_about(index: PlanIndex, rule: PlanRule, rows: frozenset[int]) -> bool:
    found = index.rows_of(rule.match)
    return bool(found) and rows.issuperset(found)


def covering_matches(index: PlanIndex, rows: Collection[int]) -> tuple[str, ...]:
    """Texts of rules that together select exactly these rows, in the order of the graph.

    The pattern that adds most ops is taken first, modules before classes and operators; ops in no pattern are named
    one by one. The fewest patterns of all cannot be found in a reasonable time (it is the set cover problem).
    """
    wanted = frozenset(rows)
    if wanted and len(wanted) == len(index.rows):
        return (_WHOLE_MODEL,)
    offered = [(-len(found), rank, match, found) for rank, match, found in _patterns_inside(index, wanted)]
    heapify(offered)
    covered: set[int] = set()
    taken: list[tuple[str, Sequence[int]]] = []
    while offered:
        size, rank, match, found = heappop(offered)
        fresh = len(found) if covered.isdisjoint(found) else sum(row not in covered for row in found)
        if fresh < 2:
            continue
        if -size > fresh:
            heappush(offered, (-fresh, rank, match, found))
            continue
        taken.append((match, found))
        covered.update(found)
    alone = [(index.match_of_row[row], (row,)) for row in wanted - covered]
    needed = [*_without_idle(taken), *alone]
    return tuple(match for match, _ in sorted(needed, key=lambda pair: pair[1][0]))


def _patterns_inside(index: PlanIndex, wanted: frozenset[int]) -> Iterator[tuple[int, str, Sequence[int]]]:
    """Rank, text and rows of the patterns that select nothing but wanted rows, and more than one of them."""
    for path, rows in _whole_modules(index, wanted).items():
        if len(rows) > 1:
            yield 0, f"module:{glob.escape(path)}", sorted(rows)
    for rank, kind in enumerate(("type", "op"), start=1):
        for name, rows in index.groups[kind].items():
            if name and len(rows) > 1 and wanted.issuperset(rows):
                yield rank, f"{kind}:{glob.escape(name)}", sorted(rows)


def _whole_modules(index: PlanIndex, wanted: frozenset[int]) -> dict[str, list[int]]:
    """Outermost modules of which every op is wanted -> their rows."""
    missing: set[str] = {""}
    """Modules with an op that is not wanted, in them or in a module inside."""
    for path, rows in index.groups["module"].items():
        if not wanted.issuperset(rows):
            above = path
            while above not in missing:
                missing.add(above)
                above = above.rpartition(".")[0]
    found: dict[str, list[int]] = {}
    for path, rows in index.groups["module"].items():
        if path not in missing:
            outermost = path
            while (above := outermost.rpartition(".")[0]) not in missing:
                outermost = above
            found.setdefault(outermost, []).extend(rows)
    return found


def _without_idle(taken: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[str, Sequence[int]]]:
    """The patterns without those whose rows later ones select too."""
    times: dict[int, int] = {}
    for _, rows in taken:
        for row in rows:
            times[row] = times.get(row, 0) + 1
    needed = []
    for match, rows in taken:
        if all(times[row] > 1 for row in rows):
            for row in rows:
                times[row] -= 1
        else:
            needed.append((match, rows))
    return needed
