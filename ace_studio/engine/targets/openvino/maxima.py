"""Products that read a maximum, or another reduction that OpenVINO computes wrongly in 8 bits."""

from typing import Any

from ace_studio.engine.targets.onnx.static import MOVING_TYPES, PRODUCT_TYPES

_REDUCTIONS = frozenset(
    {"ReduceMax", "ReduceMin", "GlobalMaxPool", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
     "ReduceLogSumExp"}
)  # fmt: skip
_PASSED = MOVING_TYPES | {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Gelu", "Add", "Sub", "Mul", "Div"}
"""Node types that OpenVINO computes with a reduction, or looks through."""
_REASON = "it reads a maximum or the like, in whose kernel OpenVINO would round every step to 8 bits"


def products_behind_maxima(model: Any) -> dict[str, str]:
    """Name of each node that must stay float -> why.

    OpenVINO (2026.4) rounds the result of a reduction inside of its kernel. Sums and means have a buffer of floats; the
    others collect in the rounded result, step by step: a linear layer behind ``amax`` had 14 dB instead of 48.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    collected: set[str] = set()
    found = {}
    for node in model.graph.node:
        computed = [name for name in node.input if name and name not in stored]
        if node.op_type in PRODUCT_TYPES and collected.intersection(computed):
            found[node.name] = _REASON
        elif node.op_type in _REDUCTIONS or (collected.intersection(computed) and _is_passed(node, len(computed))):
            collected.update(node.output)
    return found


def _is_passed(node: Any, computed: int) -> bool:
    """Whether OpenVINO may round at the reduction what is rounded behind the node."""
    return node.op_type in _PASSED and (computed == 1 or node.op_type == "Concat")
