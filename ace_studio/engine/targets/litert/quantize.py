"""Quantizes a float LiteRT model as the plan says, with ai-edge-quantizer: one rule per op, and our own ranges.

Another way was tried: quantize and dequantize ops in the torch graph (torchao's PT2E flow), which litert-torch converts
too. It knows one mode per model, static or dynamic, so a plan that mixes them cannot be written with it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ace_studio.engine.ops.families import ADAPTIVE_POOLS, AVERAGE_POOLS, RELUS, aten_ops
from ace_studio.engine.quantize.observers import ValueObservers, ValueRange
from ace_studio.engine.quantize.pt2e import PASSING_OPS, STATIC_INT8_OPS
from ace_studio.engine.quantize.pt2e_specs import scale_and_zero_point
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.litert.interpreter import opened_for_reading
from ace_studio.engine.targets.litert.model_file import MOVING, FileOp, file_ops
from ace_studio.engine.targets.shared.kernels import heavy_ops
from ace_studio.records.recipes.plan import ActivationGrid, Precision, Scheme, WeightGranularity

INT8 = frozenset({Precision.INT8_STATIC, Precision.INT8_DYNAMIC, Precision.INT8_WEIGHT})
_MOVING_OPS = aten_ops(
    "view.default reshape.default flatten.using_ints permute.default transpose.int squeeze.dim unsqueeze.default"
)
STATIC_OPS = (
    STATIC_INT8_OPS
    | PASSING_OPS
    | ADAPTIVE_POOLS
    | AVERAGE_POOLS
    | RELUS
    | _MOVING_OPS
    | aten_ops("add.Tensor mean.dim")
)
"""Operators of torch that become ops with int8 kernels."""
_WEIGHTED_KINDS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"})
_STATIC_KINDS = _WEIGHTED_KINDS | {"ADD", "MEAN", "AVERAGE_POOL_2D", "RELU"}
_MOVING_KINDS = MOVING | {"MAX_POOL_2D"}
"""Ops of the file that pass 8-bit values on: in 8 bits if all that read their results are."""


def litert_op_problem(op: str, precision: Precision) -> str:
    """Empty if the operator can be at an int8 precision, else why not."""
    if precision is Precision.INT8_STATIC:
        known = op in STATIC_OPS
        return (
            "" if known else f"this target asks LiteRT for no int8 kernel of {op}; it computes in fp32 between others"
        )
    if op in STATIC_INT8_OPS:
        return ""
    return f"LiteRT stores 8-bit weights of convolutions and linear layers for float activations, {op} has none"


def quantized_model(content: bytes, job: LoweringJob) -> tuple[bytes, dict[str, str]]:
    """The model with the int8 ops of the job's plan, and op id -> why a planned op stayed in fp32.

    Args:
        content: Of the file of the float model.
        job: Its plan, and its calibration examples.

    Raises: what ai-edge-quantizer raises.
    """
    if not job.plan.precisions & INT8:
        return content, {}
    table = job.captured.table
    ops = file_ops(content, {table.op_id[row]: row for row in table.op_rows()}, heavy_ops(table))
    planned = planned_precisions(ops, job)
    asked = frozenset[str]().union(*map(job.plan.ops_at, INT8))
    done = {op_id for op in ops if op.index in planned for op_id in op.op_ids}
    notes = dict.fromkeys(asked - done, "the converter made no op of it that can have 8 bits here")
    bounds: dict[str, Any] = {}
    static = [op for op in ops if planned.get(op.index) is Precision.INT8_STATIC]
    if static:
        bounds, unknown = _observed_bounds(content, static, job)
        for op in static:
            if unknown & {tensor.name for tensor in (*op.inputs, *op.outputs)}:
                del planned[op.index]
                notes[op.op_ids[0]] = "a value that it reads or gives was infinite or empty in the calibration examples"
    if not planned:
        return content, notes
    return _quantized(content, [op for op in ops if op.index in planned], planned, bounds, job), notes


def planned_precisions(ops: Sequence[FileOp], job: LoweringJob) -> dict[int, Precision]:
    """Index of each op of the file that is quantized -> its precision: that of its op in the plan."""
    readers: dict[str, list[FileOp]] = {}
    for op in ops:
        for tensor in op.inputs:
            readers.setdefault(tensor.name, []).append(op)
    planned: dict[int, Precision] = {}
    for op in reversed(ops):
        precision = job.plan.precision_of(op.op_ids[0]) if op.op_ids else Precision.FP32
        following = [planned.get(one.index) for tensor in op.outputs for one in readers.get(tensor.name, ())]
        floats = all(tensor.dtype == "FLOAT32" for tensor in (*op.inputs[:1], *op.outputs))
        if op.kind in _MOVING_KINDS and floats:
            if following and set(following) == {Precision.INT8_STATIC}:
                planned[op.index] = Precision.INT8_STATIC
        elif floats and (
            (precision is Precision.INT8_STATIC and op.kind in _STATIC_KINDS)
            or (precision in INT8 and op.kind in _WEIGHTED_KINDS and op.inputs[1].is_constant)
        ):
            planned[op.index] = precision
    return planned


def _observed_bounds(content: bytes, ops: Iterable[FileOp], job: LoweringJob) -> tuple[dict[str, Any], set[str]]:
    """Name of each value around these ops -> the bounds of its grid; names of those without any."""
    names = {
        tensor.name
        for op in ops
        for tensor in (*op.inputs, *op.outputs)
        if tensor.dtype == "FLOAT32" and not tensor.is_constant
    }
    symmetric = {
        tensor.name
        for op in ops
        if job.plan.scheme_of(op.op_ids[0]).activations is ActivationGrid.SYMMETRIC
        for tensor in (*op.inputs, *op.outputs)
    }
    observers = ValueObservers(job.ranges)
    examples = job.calibration()
    read = opened_for_reading(content, threads=job.threads)
    for index, example in enumerate(examples):
        job.reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
        for name, value in read(example.tensors(), names):
            observers.see(name, value)

    def grid_of(name: str) -> ActivationGrid:
        return ActivationGrid.SYMMETRIC if name in symmetric else ActivationGrid.AFFINE

    found = observers.ranges(grid_of)
    return {name: _bounds(one, grid_of(name)) for name, one in found.items()}, names - set(found)


def _quantized(
    content: bytes,
    ops: Sequence[FileOp],
    planned: Mapping[int, Precision],
    bounds: dict[str, Any],
    job: LoweringJob,
) -> bytes:
    from ai_edge_quantizer import qtyping, quantizer

    made = quantizer.Quantizer(bytearray(content))
    for op in ops:
        made.update_quantization_recipe(
            f"^{re.escape(op.outputs[0].name)};?$",
            qtyping.TFLOperationName(op.kind),
            _config(planned[op.index], job.plan.scheme_of(op.op_ids[0])),
        )
    with hushed():
        result = made.quantize(bounds or None)
    return bytes(result.quantized_model)


def _config(precision: Precision, scheme: Scheme) -> Any:
    """What ai-edge-quantizer calls the precision and the grids of an op."""
    from ai_edge_quantizer import qtyping

    is_per_channel = scheme.weights is WeightGranularity.PER_CHANNEL
    granularity = qtyping.QuantGranularity.CHANNELWISE if is_per_channel else qtyping.QuantGranularity.TENSORWISE
    weights = qtyping.TensorQuantizationConfig(num_bits=8, symmetric=True, granularity=granularity)
    is_weight_only = precision is Precision.INT8_WEIGHT
    activations = qtyping.TensorQuantizationConfig(num_bits=8, symmetric=scheme.activations is ActivationGrid.SYMMETRIC)
    return qtyping.OpQuantizationConfig(
        activation_tensor_config=activations if precision is Precision.INT8_STATIC else None,
        weight_tensor_config=weights,
        compute_precision=qtyping.ComputePrecision.FLOAT if is_weight_only else qtyping.ComputePrecision.INTEGER,
        explicit_dequantize=is_weight_only,
    )


def _bounds(found: ValueRange, grid: ActivationGrid) -> dict[str, Any]:
    """The bounds from which ai-edge-quantizer computes the scale and the zero point that we have over a range."""
    import numpy

    scale, zero_point = scale_and_zero_point(found, grid, is_signed=True)
    low = -127 if grid is ActivationGrid.SYMMETRIC else -128 - zero_point
    return {
        "min": numpy.array(low * scale, numpy.float32).reshape(1),
        "max": numpy.array((127 - zero_point) * scale, numpy.float32).reshape(1),
    }
