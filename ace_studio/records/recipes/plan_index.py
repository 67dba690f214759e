"""A plan resolved against a graph: what each rule matches, and which precision every op should have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable
from ace_studio.records.recipes.plan import OpPlan, Plan, Precision, plain_path, subject_fits


class PlanIndex:
    """The ops of a graph by what rules select them by. Rows are those of the table.

    Patterns are matched once per different module, operator and class instead of once per op, which is fast enough
    to resolve a plan after every gesture.
    """

    def __init__(self, table: GraphTable) -> None:
        types = dict(zip(table.module_paths, table.module_types, strict=True))
        self.rows = tuple(table.op_rows())
        """Rows that compute something."""
        self.op_ids = table.op_id
        by_path: dict[str, list[int]] = {}
        by_op: dict[str, list[int]] = {}
        for row in self.rows:
            by_path.setdefault(table.module[row], []).append(row)
            by_op.setdefault(table.op[row], []).append(row)
        by_type: dict[str, list[int]] = {}
        by_module: dict[str, list[int]] = {}
        for path, rows in by_path.items():
            by_type.setdefault(types.get(path, "" if path else table.name), []).extend(rows)
            by_module.setdefault(plain_path(path), []).extend(rows)
        self.groups: Mapping[str, Mapping[str, list[int]]] = {"module": by_module, "type": by_type, "op": by_op}
        """Kind of rule -> module without call numbers, class or operator -> rows."""
        self._row_of_id = {table.op_id[row]: row for row in self.rows}
        self._found: dict[str, tuple[int, ...]] = {}

    def row_of(self, op_id: str) -> int | None:
        """The row of an op; None for inputs, outputs and unknown ids."""
        return self._row_of_id.get(op_id)

    def rows_of(self, match: str) -> tuple[int, ...]:
        """Rows that a rule with this text selects, ascending."""
        found = self._found.get(match)
        if found is None:
            found = self._found[match] = self._find(match)
        return found

    def _find(self, match: str) -> tuple[int, ...]:
        kind, _, pattern = match.partition(":")
        if kind in self.groups and pattern == "*":
            return self.rows
        if kind == "id":
            row = self._row_of_id.get(pattern)
            if row is not None and not any(sign in pattern for sign in "*?["):
                return (row,)
            fits = subject_fits(match)
            return tuple(row for op_id, row in self._row_of_id.items() if fits(op_id))
        fits = subject_fits(match)
        return tuple(sorted(row for name, rows in self.groups.get(kind, {}).items() if fits(name) for row in rows))

    def deciding(self, plan: Plan) -> dict[int, int]:
        """Row -> index of the rule that decides it; rows of the default are missing."""
        found: dict[int, int] = {}
        for at, rule in enumerate(plan.rules):
            found.update(dict.fromkeys(self.rows_of(rule.match), at))
        return found

    def resolve(self, plan: Plan) -> tuple[OpPlan, ...]:
        """The planned precision and scheme of every op, in row order, with the deciding rule."""
        deciding = self.deciding(plan)
        resolved = []
        for row in self.rows:
            precision, reason, scheme = plan.default, "default of the plan", plan.scheme
            if row in deciding:
                rule = plan.rules[deciding[row]]
                precision, reason, scheme = rule.precision, f"rule {rule.match}", rule.scheme(plan)
            resolved.append(OpPlan(op_id=self.op_ids[row], precision=precision, reason=reason, scheme=scheme))
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
        decided = Counter(self.deciding(plan).values())
        return tuple((len(self.rows_of(rule.match)), decided[at]) for at, rule in enumerate(plan.rules))


@kept_by_identity
def plan_index(table: GraphTable) -> PlanIndex:
    """The index of a graph, made once."""
    return PlanIndex(table)
