"""Stores the tables of lookups in the ONNX model in 8 bits, one scale per row, where an integer precision is planned.

ONNX Runtime has a kernel that dequantizes only the rows that are read; a ``DequantizeLinear`` in front of a ``Gather``
would dequantize the whole table at every call.
Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.GatherBlockQuantized
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from ace_studio.engine.ops.roles import TABLE_NOTE, stores_table
from ace_studio.engine.quantize.affine import weight_grid
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.attention import DOMAIN
from ace_studio.engine.targets.onnx.masks import add_domain
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.records.recipes.plan import Precision

KERNEL = "GatherBlockQuantized"
_SMALLEST_BLOCK = 16
_MIDDLE = 128
"""The code that stands for 0: the kernel's bytes are unsigned and have no zero point."""


def lookups(model: Any) -> list[Any]:
    """The nodes that pick rows of a stored float32 matrix."""
    is_float32 = 1
    matrices = (one for one in model.graph.initializer if one.data_type == is_float32 and len(one.dims) == 2)
    tables = {tensor.name for tensor in matrices}
    return [
        node
        for node in model.graph.node
        if node.op_type == "Gather" and node.input[0] in tables and not any(one.i for one in node.attribute)
    ]


def planned_lookups(program: OnnxProgram, job: LoweringJob) -> tuple[frozenset[str], dict[str, str]]:
    """Names of the lookups whose tables become 8-bit, and op id -> a note if another precision was planned."""
    table = job.captured.table
    operators = {table.op_id[row]: table.op[row] for row in table.op_rows()}
    names: set[str] = set()
    notes: dict[str, str] = {}
    for node in lookups(program.model):
        owner = next(iter(program.owners.get(node.name, ())), "")
        precision = job.plan.precision_of(owner)
        if stores_table(operators.get(owner, ""), precision):
            names.add(node.name)
            notes |= {owner: TABLE_NOTE} if precision is not Precision.INT8_WEIGHT else {}
    return frozenset(names), notes


def pack_tables(model: Any, names: Collection[str]) -> None:
    """Store the tables of these lookups in 8 bits, in place; lookups of one table share it."""
    from onnx import helper, numpy_helper

    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in [node for node in lookups(model) if node.name in names]:
        packed, scales = f"{node.input[0]}_rows", f"{node.input[0]}_scales"
        weight = numpy_helper.to_array(stored[node.input[0]])
        if packed not in stored:
            grid = weight_grid(torch.from_numpy(weight.copy()))
            codes = grid.quantize(torch.from_numpy(weight.copy())).to(torch.int16) + _MIDDLE
            made = {packed: codes.to(torch.uint8).numpy(), scales: grid.scale.reshape(-1, 1).float().numpy()}
            stored |= {name: numpy_helper.from_array(value, name) for name, value in made.items()}
            model.graph.initializer.extend(stored[name] for name in made)
        block = max(_SMALLEST_BLOCK, 1 << int(np.ceil(np.log2(weight.shape[1]))))
        settings = {"block_size": block, "bits": 8, "gather_axis": 0, "quantize_axis": 1}
        inputs = [packed, node.input[1], scales]
        node.CopyFrom(helper.make_node(KERNEL, inputs, node.output, name=node.name, domain=DOMAIN, **settings))
    if names:
        add_domain(model, DOMAIN)
