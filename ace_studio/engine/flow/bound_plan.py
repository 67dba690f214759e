"""A plan bound to a captured graph and a target."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ace_studio.records.recipes.plan import Plan, Precision, Scheme


@dataclass(frozen=True)
class BoundOp:
    """What a plan asks of one op, and what the target is told to do."""

    requested: Precision
    assigned: Precision
    """As requested, or a float precision if the target refuses that."""
    reason: str
    """Why the request was refused; else the rule that requested it."""
    scheme: Scheme

    @property
    def is_refused(self) -> bool:
        """Whether the op gets another precision than the requested one."""
        return self.assigned is not self.requested


@dataclass(frozen=True)
class BoundPlan:
    """A plan, and what it means for every op of a graph."""

    plan: Plan
    ops: Mapping[str, BoundOp] = field(default_factory=dict)
    """Op id -> its part, for every op row."""

    def precision_of(self, op_id: str) -> Precision:
        """The precision assigned to an op; fp32 for what is no op."""
        op = self.ops.get(op_id)
        return Precision.FP32 if op is None else op.assigned

    def scheme_of(self, op_id: str) -> Scheme:
        """The quantization grids that the op gets at an integer precision."""
        op = self.ops.get(op_id)
        return self.plan.scheme if op is None else op.scheme

    def ops_at(self, precision: Precision) -> frozenset[str]:
        """Ids of the ops assigned to ``precision``."""
        return frozenset(op_id for op_id, op in self.ops.items() if op.assigned is precision)

    @property
    def assigned(self) -> dict[str, Precision]:
        """Op id -> assigned precision."""
        return {op_id: op.assigned for op_id, op in self.ops.items()}

    @property
    def precisions(self) -> frozenset[Precision]:
        """Every assigned precision that occurs."""
        return frozenset(op.assigned for op in self.ops.values())
