"""A plan resolved against a graph: what each rule matches, and which precision every op should have."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import OpPlan, Plan, Precision, plain_path, subject_fits

_SIGNS = re.compile(r"[*?\[]")


class PlanIndex:
    """The ops of a graph by what rules select them by. Rows are those of the table.

    Patterns are matched once per different module, operator and class instead of once per op, which is fast enough
    to resolve a plan after every gesture.
    """

    def __init__(self, table: GraphTable) -> None:
        self._table = table
        self.rows = tuple(table.op_rows())
        """Rows that compute something."""
        self.other_rows = tuple(row for row, kind in enumerate(table.kind) if kind is not OpKind.OP)
        """Inputs, outputs and breaks."""
        self.op_ids = table.op_id
        self._row_of_id = dict(zip(map(self.op_ids.__getitem__, self.rows), self.rows, strict=True))
        self._found: dict[str, tuple[int, ...]] = {}

    @property
    def row_of_id(self) -> Mapping[str, int]:
        """Op id -> row, of the ops alone."""
        return self._row_of_id

    @cached_property
    def by_path(self) -> Mapping[str, list[int]]:
        """Module with its call numbers -> rows of the ops directly in it."""
        found: dict[str, list[int]] = defaultdict(list)
        module = self._table.module
        for row in self.rows:
            found[module[row]].append(row)
        return found

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Kind of rule -> module without call numbers, class or operator -> rows."""
        table = self._table
        types = dict(zip(table.module_paths, table.module_types, strict=True))
        by_op: dict[str, list[int]] = defaultdict(list)
        for row in self.rows:
            by_op[table.op[row]].append(row)
        by_type: dict[str, list[int]] = defaultdict(list)
        by_module: dict[str, list[int]] = defaultdict(list)
        for path, rows in self.by_path.items():
            by_type[types.get(path, "" if path else table.name)].extend(rows)
            by_module[plain_path(path)].extend(rows)
        return {"module": by_module, "type": by_type, "op": by_op}

    def row_of(self, op_id: str) -> int | None:
        """The row of an op; None for inputs, outputs and unknown ids."""
        return self._row_of_id.get(op_id)

    @kept_by_identity
    def rows_of_ops(self, op_ids: tuple[str, ...]) -> list[int]:
        """Rows of ops; inputs, outputs and unknown ids are left out."""
        return [row for row in map(self._row_of_id.get, op_ids) if row is not None]

    def rows_of(self, match: str) -> tuple[int, ...]:
        """Rows that a rule with this text selects, ascending."""
        found = self._found.get(match)
        if found is None and match.startswith("id:") and not _SIGNS.search(match):
            row = self._row_of_id.get(match[3:])
            return () if row is None else (row,)
        if found is None:
            found = self._found[match] = self._find(match)
        return found

    def _find(self, match: str) -> tuple[int, ...]:
        kind, _, pattern = match.partition(":")
        if kind in {"module", "type", "op"} and pattern == "*":
            return self.rows
        if kind == "id":
            fits = subject_fits(match)
            return tuple(row for op_id, row in self._row_of_id.items() if fits(op_id))
        fits = subject_fits(match)
        return tuple(sorted(row for name, rows in self.groups.get(kind, {}).items() if fits(name) for row in rows))

    @kept_by_identity
    def deciding(self, plan: Plan) -> Sequence[int]:
        """[rows] Index of the rule that decides each row; -1 for the default."""
        found = [-1] * len(self.op_ids)
        for at, rule in enumerate(plan.rules):
            for row in self.rows_of(rule.match):
                found[row] = at
        return found

    def resolve(self, plan: Plan) -> tuple[OpPlan, ...]:
        """The planned precision and scheme of every op, in row order, with the deciding rule."""
        deciding = self.deciding(plan)
        resolved = []
        for row in self.rows:
            precision, reason, scheme = plan.default, "default of the plan", plan.scheme
            if deciding[row] >= 0:
                rule = plan.rules[deciding[row]]
                precision, reason, scheme = rule.precision, f"rule {rule.match}", rule.scheme(plan)
            resolved.append(OpPlan(op_id=self.op_ids[row], precision=precision, reason=reason, scheme=scheme))
        return tuple(resolved)

    def idle_rules(self, plan: Plan) -> tuple[str, ...]:
        """The rules that match no op of the graph: most often a misspelt name."""
        return tuple(rule.match for rule in plan.rules if not self.rows_of(rule.match))

    def precisions(self, plan: Plan) -> Sequence[Precision]:
        """[rows] Planned precision; only meaningful for `rows`."""
        known = [*(rule.precision for rule in plan.rules), plan.default]
        return [known[at] for at in self.deciding(plan)]

    def counts(self, plan: Plan) -> tuple[tuple[int, int], ...]:
        """Of each rule: how many ops it matches, and how many of them it decides."""
        decided = Counter(self.deciding(plan))
        return tuple((len(self.rows_of(rule.match)), decided[at]) for at, rule in enumerate(plan.rules))


@kept_by_identity
def plan_index(table: GraphTable) -> PlanIndex:
    """The index of a graph, made once."""
    return PlanIndex(table)
