"""A plan resolved against a graph: what each rule matches, and which precision every op should have."""

import glob
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.recipes.plan import OpPlan, Plan, PlanRule, Precision, plain_path, subject_fits

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
        self.row_of_id = dict(zip(map(self.op_ids.__getitem__, self.rows), self.rows, strict=True))
        """Op id -> row, of the ops alone."""
        self._found: dict[str, tuple[int, ...]] = {}

    @cached_property
    def by_path(self) -> Mapping[str, list[int]]:
        """Module with its call numbers -> rows of the ops directly in it."""
        found: dict[str, list[int]] = defaultdict(list)
        module = self._table.module
        for row in self.rows:
            found[module[row]].append(row)
        return found

    @cached_property
    def inside(self) -> Mapping[str, list[int]]:
        """Module with its call numbers -> rows of the ops in it and in the modules in it, in no order.

        Modules without ops are left out; the root is empty.
        """
        found: dict[str, list[int]] = defaultdict(list)
        for path, rows in self.by_path.items():
            for above in ancestors(path):
                found[above].extend(rows)
        return dict(found)

    @cached_property
    def match_of_row(self) -> Mapping[int, str]:
        """Row -> ``match`` of the rule for this op alone."""
        ids = ((row, self.op_ids[row]) for row in self.rows)
        return {row: f"id:{glob.escape(op_id) if _SIGNS.search(op_id) else op_id}" for row, op_id in ids}

    @cached_property
    def row_of_match(self) -> Mapping[str, int]:
        """``match`` of the rule for one op alone -> its row."""
        return {match: row for row, match in self.match_of_row.items()}

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

    @kept_by_identity
    def rows_of_ops(self, op_ids: tuple[str, ...]) -> list[int]:
        """Rows of ops; inputs, outputs and unknown ids are left out."""
        if op_ids is self.op_ids:
            return list(self.rows)
        return [row for row in map(self.row_of_id.get, op_ids) if row is not None]

    def rows_of(self, match: str) -> tuple[int, ...]:
        """Rows that a rule with this text selects, ascending."""
        row = self.row_of_match.get(match)
        if row is not None:
            return (row,)
        found = self._found.get(match)
        if found is None:
            found = self._found[match] = self._find(match)
        return found

    def _find(self, match: str) -> tuple[int, ...]:
        kind, _, pattern = match.partition(":")
        if kind in {"module", "type", "op"} and pattern == "*":
            return self.rows
        if kind == "id":
            if not _SIGNS.search(pattern):
                return ()
            fits = subject_fits(match)
            return tuple(row for op_id, row in self.row_of_id.items() if fits(op_id))
        fits = subject_fits(match)
        return tuple(sorted(row for name, rows in self.groups.get(kind, {}).items() if fits(name) for row in rows))

    def deciding(self, plan: Plan) -> Sequence[int]:
        """[rows] Index of the rule that decides each row; -1 for the default."""
        return self._decided(plan.rules)[0]

    @kept_by_identity
    def _decided(self, rules: tuple[PlanRule, ...]) -> tuple[list[int], list[int]]:
        """[rows] The rule that decides each row, -1 for none; [rules] how many ops each rule matches.

        Plans of very many rules name ops one by one: such a rule costs one look-up.
        """
        found, matched = [-1] * len(self.op_ids), [1] * len(rules)
        of_one = self.row_of_match
        for at, rule in enumerate(rules):
            row = of_one.get(rule.match)
            if row is not None:
                found[row] = at
                continue
            rows = self.rows_of(rule.match)
            matched[at] = len(rows)
            for row in rows:
                found[row] = at
        return found, matched

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
        deciding, matched = self._decided(plan.rules)
        decided = Counter(deciding)
        return tuple(zip(matched, map(decided.__getitem__, range(len(matched))), strict=True))


def ancestors(path: str) -> Iterator[str]:
    """The path of a module and every path above it, the root (empty) last."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


@kept_by_identity
def plan_index(table: GraphTable) -> PlanIndex:
    """The index of a graph, made once."""
    return PlanIndex(table)
