"""The sizes that an artifact with planned memory must take: how far each dynamic dimension may grow."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import fx
from torch.export import ExportedProgram

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program
from ace_studio.records.tensors import size_limits

GROWTH = 2
SMALLEST_BOUND = 64
"""A dynamic dimension may grow to `GROWTH` times the largest size of an example, and to 64 in any case."""


Sizes = Mapping[str, tuple[int, ...]]
"""``x.0`` -> smallest, usual and largest size, as the user chose them."""


def size_bounds(captured: CapturedModel, sizes: Sizes = MappingProxyType({})) -> list[dict[int, int]]:
    """Per tensor input: index of each dynamic dimension -> the largest size that the artifact must take.

    A size that the user chose is raised to those of the examples, unseen ones included, which every artifact is run at.
    """
    examples = [example.tensors() for example in captured.examples]
    bounds: list[dict[int, int]] = []
    proven = {(one.leaf, one.dim): one.high for one in size_limits(captured.inputs) if one.high is not None}
    for place, (found, dims) in enumerate(zip(captured.inputs, captured.dynamic_dims(), strict=True)):
        most = {dim: max(leaves[place].shape[dim] for leaves in examples) for dim in dims}
        chosen = {dim: sizes.get(f"{found.name}.{dim}") for dim in dims}
        wanted = {
            dim: max(own[2], most[dim]) if (own := chosen[dim]) else max(SMALLEST_BOUND, GROWTH * most[dim])
            for dim in dims
        }
        bounds.append({dim: min(size, proven.get((place, dim), size)) for dim, size in wanted.items()})
    return bounds


def export_bounded(graph_module: fx.GraphModule, job: LoweringJob) -> ExportedProgram:
    """Export a rewritten graph with its dynamic sizes up to these bounds."""
    bounds = size_bounds(job.captured, job.sizes)
    shapes = tuple({index: DYNAMIC(max=most) for index, most in dims.items()} for dims in bounds)
    inputs = tuple(tensor.contiguous() for tensor in job.captured.example.tensors())
    with torch.no_grad():
        return export_program(graph_module, inputs, {}, dynamic_shapes=shapes, strict=False)
