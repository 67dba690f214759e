"""NNCF's SmoothQuant, for layers without an op in front that could absorb the scale: NNCF inserts multiplications.

The smoothed model is kept only if it is closer to the float model than the plain one, on held-out examples.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.flow import Example
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.engine.quantize.fidelity import SMALLEST_GAIN_DB, split_examples, sqnr_db
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.engine.targets.shared.flat_call import as_numpy
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import BATCHED_PRODUCTS, operator_name
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod
from ace_studio.records.results import Improvement

ENOUGH_EXAMPLES = 4
"""With fewer examples it is tried only if it was asked for."""

Quantize = Callable[[Sequence[Example], bool], Any]
"""Quantizes the float model: examples to calibrate with, whether to smooth."""


def is_asked(job: LoweringJob) -> bool:
    """Whether the recipe asks for SmoothQuant and ours changed nothing."""
    return ImproveMethod.SMOOTHQUANT in job.library_methods


def is_due(job: LoweringJob, examples: Sequence[Example]) -> bool:
    """Whether to try it unasked: with attention, whose outliers it is made for, and enough examples."""
    return len(examples) >= ENOUGH_EXAMPLES and has_attention(job.captured.table)


def has_attention(table: GraphTable) -> bool:
    """Whether there is attention: as one op, or as a softmax and batched matrix products."""
    ops = {table.op[row] for row in table.op_rows()}
    products = {operator_name(op) for op in ops} & BATCHED_PRODUCTS
    is_parted = any("softmax" in op.lower() for op in ops) and bool(products)
    return is_parted or any("scaled_dot_product_attention" in op for op in ops)


def has_convolutions_only(table: GraphTable) -> bool:
    """Whether there are convolutions, and no attention beside them."""
    ops = {table.op[row] for row in table.op_rows()}
    return any(is_convolution(op) for op in ops) and not has_attention(table)


def smoothed_if_better(
    model: Any, program: OnnxProgram, job: LoweringJob, examples: Sequence[Example], *, quantize: Quantize
) -> Any:
    """The quantized model, smoothed if that helps. The outcome is added to ``job.improvements``.

    Args:
        model: The float ``openvino.Model``.
        program: Names of its inputs.
        job: Gets the report.
        examples: Calibration examples; every fourth, or the last, is held out to judge by.
        quantize: Quantizes the float model.
    """
    if has_convolutions_only(job.captured.table):
        # Its gain on ResNet50 came from NNCF's scheme for transformers, which leaves the residual sums in float: 18
        # more kernels and 3 % more time.
        _tell(job, reason="NNCF's smooths the inputs of matrix products, and this model has convolutions instead")
        return quantize(examples, False)
    if len(examples) < 2:
        _tell(job, reason="it takes two calibration examples or more: some to work with, some to judge by")
        return quantize(examples, False)
    started = time.monotonic()
    work, judged = split_examples(examples)
    wanted = _outputs(model, program, judged)
    plain, smoothed = quantize(work, False), quantize(work, True)
    before, after = (sqnr_db(wanted, _outputs(one, program, judged)) for one in (plain, smoothed))
    kept = after >= before + SMALLEST_GAIN_DB
    words = "closer to the original" if kept else "no closer to the original"
    examples_held = f"{len(judged)} calibration example{'s' if len(judged) > 1 else ''}"
    _tell(
        job,
        reason=f"NNCF's, in OpenVINO only: {words} on {examples_held} that it did not see",
        before_db=round(before, 3),
        after_db=round(after, 3),
        kept=kept,
        ops=len(job.plan.ops_at(Precision.INT8_STATIC)) if kept else 0,
        seconds=round(time.monotonic() - started, 3),
    )
    return quantize(examples, kept)  # now with all examples, which widens the ranges


def _tell(job: LoweringJob, *, reason: str, **findings: Any) -> None:
    job.improvements.append(
        Improvement(
            method=str(ImproveMethod.SMOOTHQUANT), precision=str(job.plan.plan.default), reason=reason, **findings
        )
    )


def _outputs(model: Any, program: OnnxProgram, examples: Sequence[Example]) -> list[Tensor]:
    """Every output of real numbers, or every one if there are none, over all examples each, in float32 arithmetic."""
    compiled = import_openvino().Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    real = [output for output in compiled.outputs if output.get_element_type().is_real()]
    outputs = real or list(compiled.outputs)
    found: list[list[Tensor]] = [[] for _ in outputs]
    for example in examples:
        feed = {name: as_numpy(leaf) for name, leaf in zip(program.input_names, example.tensors(), strict=True) if name}
        results = compiled(feed)
        for place, output in enumerate(outputs):
            found[place].append(torch.from_numpy(results[output].copy()).flatten().float())
    return [torch.cat(parts) for parts in found]
