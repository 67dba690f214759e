"""The verbs about precisions: the default, the rules and their order, and ticks on modules."""

import glob
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.plan import ActivationGrid, Plan, PlanRule, Precision, WeightGranularity, rule_problem
from ace_studio.records.recipes.plan_index import PlanIndex, plan_index
from ace_studio.session import choices, plan_rules
from ace_studio.session.state import SessionState


class PlanVerbs:
    """The precisions of ops; each verb is one step of undo."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def set_default_precision(self, precision: Precision) -> None:
        """Set the precision of every op that no rule matches."""
        # A precision chosen by hand ends planning from the goal.
        changed = choices.change(self._state.document.recipe, "plan", default=precision, from_goal=False)
        self._state.choose(f"default precision {precision}", changed)

    def set_plan_from_goal(self, from_goal: bool) -> None:
        """Set whether the goal chooses the precisions."""
        label = "precisions from the goal" if from_goal else "precisions by hand"
        self._state.choose(label, choices.change(self._state.document.recipe, "plan", from_goal=from_goal))

    def set_rule(self, match: str, precision: Precision) -> None:
        """Append a rule such as ``module:layer1.*``; as the last one it wins."""
        if self._is_sound(match):
            changed = choices.with_rules(self._state.document.recipe, (match,), precision)
            self._state.choose(f"{precision} for {match}", changed, subject=f"rule {match}")

    def remove_rule(self, match: str) -> None:
        """Remove the rules with this match."""
        self._state.choose(f"remove {match}", choices.with_rules(self._state.document.recipe, (match,), None))

    def remove_rule_at(self, index: int) -> None:
        """Remove one rule."""
        plan = self._state.document.recipe.plan
        if 0 <= index < len(plan.rules):
            kept = (*plan.rules[:index], *plan.rules[index + 1 :])
            self._plan(f"remove {plan.rules[index].match}", replace(plan, rules=kept))

    def change_rule(self, index: int, *, match: str = "", precision: Precision | None = None) -> None:
        """Change the match or the precision of a rule, which keeps its place."""
        plan = self._state.document.recipe.plan
        if not 0 <= index < len(plan.rules) or (match and not self._is_sound(match)):
            return
        old = plan.rules[index]
        rule = replace(old, match=match or old.match, precision=precision or old.precision)
        self._plan(f"{rule.precision} for {rule.match}", plan_rules.with_changed_rule(plan, index, rule))

    def set_rule_grid(self, index: int, **grid: WeightGranularity | ActivationGrid | int | None) -> None:
        """The quantization grids for the ops of one rule: ``weights``, ``activations`` or ``group_size``.

        None lets the plan decide.
        """
        plan = self._state.document.recipe.plan
        if 0 <= index < len(plan.rules):
            rule = replace(plan.rules[index], **grid)
            self._plan(f"grid of {rule.match}", plan_rules.with_changed_rule(plan, index, rule))

    def move_rule(self, index: int, to: int) -> None:
        """Move a rule to another place in the order: later rules win."""
        plan = self._state.document.recipe.plan
        if 0 <= index < len(plan.rules):
            self._plan(f"order of {plan.rules[index].match}", plan_rules.with_moved_rule(plan, index, to))

    def set_precision_of_ops(self, op_ids: Sequence[str], precision: Precision | None) -> None:
        """Set the precision of these ops, with as few rules as cover them; None removes the rules about them only."""
        wanted = tuple(dict.fromkeys(op_ids))
        count = "1 op" if len(wanted) == 1 else f"{len(wanted)} ops"
        label = f"{precision} for {count}" if precision else f"no own precision for {count}"
        recipe, graph = self._state.document.recipe, self._state.document.graph
        if graph is None:
            self._state.choose(label, choices.with_rules(recipe, choices.op_matches(wanted), precision))
        else:
            self._plan(label, with_precision_of_ops(recipe.plan, plan_index(graph), wanted, precision))

    def set_precision_of_module(self, path: str, precision: Precision | None) -> None:
        """Set the precision of a module and everything in it; None removes the rules about it."""
        name = path or "the whole model"
        label = f"{precision} for {name}" if precision else f"no own precision for {name}"
        self._plan(label, plan_rules.with_module(self._state.document.recipe.plan, path, precision))

    def tick_module(self, path: str, *, on: bool, precision: Precision) -> None:
        """Compress a module (at ``precision``, unless an outer rule sets another), or keep it at fp32."""
        graph = self._state.document.graph
        if graph is not None:
            plan = self._state.document.recipe.plan
            plan = plan_rules.ticked(plan, plan_index(graph), path, on=on, precision=precision)
            self._plan(f"{'compress' if on else 'keep'} {path or 'the whole model'}", plan)

    def _plan(self, label: str, plan: Plan) -> None:
        self._state.choose(label, replace(self._state.document.recipe, plan=plan))

    def _is_sound(self, match: str) -> bool:
        fault = rule_problem(match)
        if fault:
            self._state.report(Problem(code=ErrorCode.RECIPE, what=fault, remedy="Write for example module:layer1.*"))
        return not fault


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
