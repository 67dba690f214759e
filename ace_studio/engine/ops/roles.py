"""Which arguments of an op are its data and its weight, and along which axes the weight's scales lie."""

from dataclasses import dataclass

from torch import Tensor, fx

from ace_studio.records.ops import CONVOLUTIONS, TABLE_LOOKUPS, operator_name
from ace_studio.records.recipes.plan import Precision


@dataclass(frozen=True)
class WeightAxes:
    """Where a weight's channels lie."""

    output: int
    """Axis of the output channels: one scale each."""
    is_blocked: bool
    """Whether the weight is a matrix, whose rows can be cut into groups."""


@dataclass(frozen=True)
class OpRole:
    """The product of an op: places of its two factors among its arguments."""

    data: int
    weight: int
    channel_axis: int

    def weight_axes(self, node: fx.Node, weight: Tensor) -> WeightAxes:
        """The axes of this node's weight; ``aten.convolution`` says in an argument whether it is transposed."""
        axis = self.channel_axis
        if str(node.target) == "aten.convolution.default" and len(node.args) > 6 and node.args[6]:
            axis = 1
        return WeightAxes(output=axis % weight.dim(), is_blocked=weight.dim() == 2)


_ROLES: dict[str, OpRole] = {
    **{
        f"aten.{name}": OpRole(0, 1, 0)
        for name in (
            "linear.default", "convolution.default", "conv1d.default", "conv2d.default", "conv3d.default",
            "conv1d.padding", "conv2d.padding", "conv3d.padding",
        )
    },
    **{
        f"aten.{name}": OpRole(0, 1, 1)
        for name in ("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
    },
    **{f"aten.{name}.default": OpRole(0, 1, -1) for name in ("mm", "matmul", "bmm")},
    "aten.addmm.default": OpRole(1, 2, -1),
}  # fmt: skip


def op_role(op: str) -> OpRole | None:
    """The role of an operator (``aten.conv2d.default``) that multiplies; None for all others."""
    return _ROLES.get(op)


def is_product(op: str) -> bool:
    """Whether an operator is a convolution or a matrix product whose role is known."""
    return op in _ROLES


def is_convolution(op: str) -> bool:
    """Whether an operator is a convolution of any kind, transposed ones included."""
    return operator_name(op) in CONVOLUTIONS


_TABLE_PRECISIONS = frozenset(
    {Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT, Precision.INT4_WEIGHT}
)
TABLE_NOTE = "a lookup computes nothing: its rows are stored in 8 bits and widened when they are picked"


def stores_table(op: str, precision: Precision) -> bool:
    """Whether an operator picks rows of a table that a precision stores in 8 bits.

    Every integer precision does, with one symmetric scale per row: a lookup reads few rows of many, so how they are
    stored decides about size and not about time, and there is no arithmetic that fewer bits could speed up.
    """
    return precision in _TABLE_PRECISIONS and operator_name(op) in TABLE_LOOKUPS
