"""A plan bound to a captured graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ace_studio.records.recipes.plan import Plan, Precision, Scheme


@dataclass(frozen=True)
class BoundPlan:
    """A plan bound to a captured graph: the precision of every op that can have one on its own."""

    plan: Plan
    precision: Mapping[str, Precision]
    """Op id -> planned precision, for every op row."""
    reason: Mapping[str, str]
    """Op id -> why (which rule, or why it was left as it is)."""
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    """Op id -> grids, for the ops whose grids are not the plan's."""

    def scheme_of(self, op_id: str) -> Scheme:
        """The grids that the op gets at an integer precision."""
        return self.schemes.get(op_id, self.plan.scheme)

    def ops_at(self, precision: Precision) -> frozenset[str]:
        """Ids of the ops planned at ``precision``."""
        return frozenset(op_id for op_id, planned in self.precision.items() if planned is precision)

    @property
    def precisions(self) -> frozenset[Precision]:
        """Every precision that occurs."""
        return frozenset(self.precision.values())
