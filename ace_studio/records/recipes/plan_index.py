"""A plan resolved against a graph: what each rule matches, and which precision every op should have."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Callable

from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import OpPlan, Plan, Precision, rule_matches


class PlanIndex:
    """The ops of a graph by what rules select them by. Rows are those of the table.

    Patterns are matched once per different module, operator and class instead of once per op, which is fast enough
    to resolve a plan after every gesture.
    """

    def __init__(self, table: GraphTable) -> None:
        types = dict(zip(table.module_paths, table.module_types, strict=True))
        self.rows = tuple(table.op_rows())
        """Rows that compute something."""
        self._op_ids = table.op_id
        self._rows_by_subject: dict[str, dict[str, list[int]]] = {"module": {}, "op": {}, "type": {}, "id": {}}
        for row in self.rows:
            path = table.module[row]
            kind = types.get(path, "" if path else table.name)
            subjects = {"module": path, "op": table.op[row], "type": kind, "id": table.op_id[row]}
            for name, subject in subjects.items():
                self._rows_by_subject[name].setdefault(subject, []).append(row)
        self._found: dict[str, tuple[int, ...]] = {}

    def rows_of(self, match: str) -> tuple[int, ...]:
        """Rows that a rule with this text selects, ascending."""
        found = self._found.get(match)
        if found is None:
            found = self._found[match] = tuple(sorted(self._find(match)))
        return found

    def _find(self, match: str) -> list[int]:
        kind, _, pattern = match.partition(":")
        rows_by_subject = self._rows_by_subject.get(kind, {})
        if kind == "id" and pattern in rows_by_subject and pattern == glob.escape(pattern):
            return rows_by_subject[pattern]
        fits = _fits(kind, pattern, match)
        return [row for subject, rows in rows_by_subject.items() if fits(subject) for row in rows]

    def deciding(self, plan: Plan) -> dict[int, int]:
        """Row -> index of the rule that decides it; rows of the default are missing."""
        return {row: at for at, rule in enumerate(plan.rules) for row in self.rows_of(rule.match)}

    def resolve(self, plan: Plan) -> tuple[OpPlan, ...]:
        """The planned precision and scheme of every op, in row order, with the deciding rule."""
        deciding = self.deciding(plan)
        resolved = []
        for row in self.rows:
            precision, reason, scheme = plan.default, "default of the plan", plan.scheme
            if row in deciding:
                rule = plan.rules[deciding[row]]
                precision, reason, scheme = rule.precision, f"rule {rule.match}", rule.scheme(plan)
            resolved.append(OpPlan(op_id=self._op_ids[row], precision=precision, reason=reason, scheme=scheme))
        return tuple(resolved)

    def idle_rules(self, plan: Plan) -> tuple[str, ...]:
        """The rules that match no op of the graph: most often a misspelt name."""
        return tuple(rule.match for rule in plan.rules if not self.rows_of(rule.match))

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


def _fits(kind: str, pattern: str, match: str) -> Callable[[str], bool]:
    if kind == "module":
        return lambda path: rule_matches(match, op_id="", op="", module=path, module_type="")
    return lambda subject: fnmatch.fnmatchcase(subject, pattern)
