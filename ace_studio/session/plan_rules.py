"""Rules of the plan against a graph: what each matches, what it decides, and what a tick on a module means.

`PlanIndex` answers as `resolve_plan` does, but fast enough to be asked after every gesture: words are matched once
per different module, operator and class instead of once per op.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec.structs import replace

from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import OpPlan, Plan, PlanRule, Precision, rule_matches


class Tick(StrEnum):
    """Whether the ops of a module are compressed."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


class PlanIndex:
    """The ops of a graph by what rules select them by. Rows are those of the table."""

    def __init__(self, table: GraphTable) -> None:
        """Sort the ops into drawers."""
        types = dict(zip(table.module_paths, table.module_types, strict=True))
        self.rows = tuple(table.op_rows())
        """Rows that compute something."""
        self._table = table
        self._drawers: dict[str, dict[str, list[int]]] = {"module": {}, "op": {}, "type": {}, "id": {}}
        for row in self.rows:
            path = table.module[row]
            kind = types.get(path, "" if path else table.name)
            subjects = {"module": path, "op": table.op[row], "type": kind, "id": table.op_id[row]}
            for name, subject in subjects.items():
                self._drawers[name].setdefault(subject, []).append(row)
        self._found: dict[str, tuple[int, ...]] = {}

    def rows_of(self, match: str) -> tuple[int, ...]:
        """Rows that a rule with these words selects, ascending."""
        found = self._found.get(match)
        if found is None:
            found = self._found[match] = tuple(sorted(self._find(match)))
        return found

    def _find(self, match: str) -> list[int]:
        kind, _, pattern = match.partition(":")
        drawer = self._drawers.get(kind, {})
        if kind == "id" and pattern in drawer and pattern == glob.escape(pattern):
            return drawer[pattern]
        fits = _fits(kind, pattern, match)
        return [row for subject, rows in drawer.items() if fits(subject) for row in rows]

    def deciding(self, plan: Plan) -> dict[int, int]:
        """Row -> index of the rule that decides it; rows of the default are missing."""
        return {row: at for at, rule in enumerate(plan.rules) for row in self.rows_of(rule.match)}

    def resolve(self, plan: Plan) -> tuple[OpPlan, ...]:
        """The planned precision of every op in row order, as `resolve_plan` gives it."""
        deciding, rules = self.deciding(plan), plan.rules
        found = []
        for row in self.rows:
            at = deciding.get(row, -1)
            precision = plan.default if at < 0 else rules[at].precision
            reason = "default of the plan" if at < 0 else f"rule {rules[at].match}"
            found.append(OpPlan(op_id=self._table.op_id[row], precision=precision, reason=reason))
        return tuple(found)

    def precisions(self, plan: Plan) -> dict[int, Precision]:
        """Row -> planned precision."""
        deciding = self.deciding(plan)
        return {row: plan.rules[deciding[row]].precision if row in deciding else plan.default for row in self.rows}

    def counts(self, plan: Plan) -> tuple[tuple[int, int], ...]:
        """Of each rule: how many ops it matches, and how many of them it decides."""
        decided: dict[int, int] = {}
        for at in self.deciding(plan).values():
            decided[at] = decided.get(at, 0) + 1
        return tuple((len(self.rows_of(rule.match)), decided.get(at, 0)) for at, rule in enumerate(plan.rules))

    def tick(self, plan: Plan, path: str) -> Tick:
        """Whether the ops in a module (empty: the whole model) are compressed by a plan."""
        known = self.precisions(plan)
        is_high = {known[row] is Precision.FP32 for row in self.rows_of(module_match(path))}
        return Tick.SOME if len(is_high) == 2 else Tick.NONE if True in is_high else Tick.ALL


def _fits(kind: str, pattern: str, match: str) -> Callable[[str], bool]:
    if kind == "module":
        return lambda path: rule_matches(match, op_id="", op="", module=path, module_type="")
    return lambda subject: fnmatch.fnmatchcase(subject, pattern)


def module_match(path: str) -> str:
    """The words of a rule for a module and everything in it; every op for the empty path."""
    plain = ".".join(part.partition("@")[0] for part in path.split("."))
    return f"module:{glob.escape(plain)}" if path else "module:*"


def op_match(op: str) -> str:
    """The words of a rule for an operator."""
    return f"op:{glob.escape(op)}"


def type_match(module_type: str) -> str:
    """The words of a rule for a class of modules."""
    return f"type:{glob.escape(module_type)}"


def with_rule_list(plan: Plan, rules: Sequence[PlanRule]) -> Plan:
    """The plan with these rules; a plan with rules is one made by hand."""
    return replace(plan, rules=tuple(rules), from_goal=plan.from_goal and not rules)


def with_moved_rule(plan: Plan, index: int, to: int) -> Plan:
    """The plan with one rule at another place in the order."""
    rules = list(plan.rules)
    rules.insert(max(0, min(len(rules) - 1, to)), rules.pop(index))
    return replace(plan, rules=tuple(rules))


def with_changed_rule(plan: Plan, index: int, rule: PlanRule) -> Plan:
    """The plan with other words or another precision in a rule, which keeps its place."""
    return replace(plan, rules=(*plan.rules[:index], rule, *plan.rules[index + 1 :]))


def with_module(plan: Plan, path: str, precision: Precision | None) -> Plan:
    """A precision for a module and everything in it; None takes its own rules, and those of modules in it, away.

    For the whole model (an empty path) the default is changed instead, and no rule for a module is left.
    """
    inside = [rule for rule in plan.rules if _is_about(rule.match, path)]
    kept = tuple(rule for rule in plan.rules if rule not in inside)
    if precision is None:
        return replace(plan, rules=kept)
    if not path:
        return replace(plan, default=precision, rules=kept, from_goal=False)
    return replace(plan, rules=(*kept, PlanRule(match=module_match(path), precision=precision)), from_goal=False)


def ticked(plan: Plan, index: PlanIndex, path: str, *, on: bool, precision: Precision) -> Plan:
    """The plan with a module compressed, or kept at fp32, by as few rules as that takes.

    Args:
        plan: The plan as it is.
        index: Of the graph.
        path: The module; empty for the whole model.
        on: Whether its ops are to be compressed.
        precision: At what, if nothing but fp32 is left once its own rules are gone.
    """
    wanted = Tick.ALL if on else Tick.NONE
    bare = with_module(plan, path, None)
    if path and index.tick(bare, path) is wanted:
        return bare
    return with_module(plan, path, precision if on else Precision.FP32)


def _is_about(match: str, path: str) -> bool:
    """Whether a rule is about this module or one inside it, and nothing else."""
    kind, _, pattern = match.partition(":")
    if kind != "module":
        return False
    own = module_match(path).partition(":")[2] if path else ""
    plain = pattern.removesuffix(".*")
    return not path or plain == own or plain.startswith(f"{own}.")
