"""What became of the packed weights of ops that OpenVINO multiplies as floats."""

from collections.abc import Mapping, Sequence
from typing import Any

from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.shared.kernels import Kernel, heavy_ops
from ace_studio.records.recipes.plan import Precision

WIDENED = "its weights are stored in 8 or 4 bits, and OpenVINO widens them when it opens the model"
_WEIGHT_ONLY = (Precision.INT8_WEIGHT, Precision.INT8_DYNAMIC, Precision.INT4_WEIGHT)
_PRODUCTS = frozenset({"Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul"})
_DECOMPRESSION = frozenset({"Convert", "Multiply", "Subtract", "Reshape", "Transpose"})
_PACKED = frozenset({"i8", "u8", "i4", "u4"})


def notes_of_kernels(
    notes: Mapping[str, str],
    job: LoweringJob,
    kernels: Sequence[Kernel],
    model: Any,
    owners: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """The notes, with the truth on weighted ops that were planned with packed weights and run as floats.

    Args:
        notes: Op id -> what the compression did instead of the plan. It does not explain a float kernel.
        job: The plan and the captured graph.
        kernels: What OpenVINO runs.
        model: The compressed ``openvino.Model``.
        owners: Name of a product in the model -> op ids, the main one first.
    """
    planned = set().union(*(job.plan.ops_at(precision) for precision in _WEIGHT_ONLY)) & heavy_ops(job.captured.table)
    packed = {kernel.op_ids[0] for kernel in kernels if kernel.op_ids and kernel.precision in _WEIGHT_ONLY}
    told = {op_id: words for op_id, words in notes.items() if op_id not in planned - packed}
    for op in model.get_ops():
        if op.get_type_name() in _PRODUCTS and any(_is_packed(op.input_value(place)) for place in (0, 1)):
            ids = owners.get(op.get_friendly_name().partition("/")[0], ())
            told |= dict.fromkeys({*ids[:1]} & (planned - packed), WIDENED)
    return told


def _is_packed(value: Any) -> bool:
    """Whether a factor is a constant of few bits behind its decompression."""
    node = value.get_node()
    while node.get_type_name() in _DECOMPRESSION:
        node = node.input_value(0).get_node()
    return node.get_type_name() == "Constant" and node.get_element_type().get_type_name() in _PACKED
