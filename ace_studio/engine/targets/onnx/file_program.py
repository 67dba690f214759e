"""Makes the program that ONNX Runtime and OpenVINO lower from an ONNX file: constants folded, every node owned."""

import contextlib
from collections.abc import Sequence
from typing import Any

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.onnx import program
from ace_studio.engine.targets.onnx.compared import Feed, alike_or_before
from ace_studio.engine.targets.onnx.program import SHARED_KEY, OnnxProgram, folded_ops, graph_steps, name_nodes
from ace_studio.engine.targets.shared.kernels import GraphStep, adopt_orphans, covered_steps, heavy_ops, owners_of
from ace_studio.engine.torch_private.onnx import constants_compared_exactly
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable

_LEAST_OPSET = 13
"""The first whose ``DequantizeLinear`` takes one scale per channel."""


def shared_program(
    model: Any, table: GraphTable, *, node_ids: Sequence[str], input_names: Sequence[str], feeds: Sequence[Feed]
) -> dict[str, Any]:
    """``LoweringJob.shared`` for an ONNX file: its own program, so that none is exported.

    Args:
        model: ``ModelProto`` of the file, with its weights. Not changed.
        table: Its graph.
        node_ids: Op id of every node, in order.
        input_names: Names of the inputs, in order.
        feeds: Calls on which the program is compared with the file.

    Raises: AceError(UNSUPPORTED) if the weights do not fit into one message.
    """
    if model.ByteSize() > program.MAX_PROTO_BYTES:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"The weights take {model.ByteSize() / 1e9:.1f} GB",
            why="an ONNX model in one message holds at most 2 GiB; larger files can be looked at, not compressed yet",
            remedy="export a smaller model",
        )
    named = type(model)()
    named.CopyFrom(model)
    for node, op_id in zip(named.graph.node, node_ids, strict=True):
        node.name = op_id
    before = graph_steps(named)
    folded = named
    for change in (_of_least_opset, _folded):
        with (
            hushed(),
            contextlib.suppress(Exception),
        ):  # border: converter and optimizer refuse nodes in their own words
            folded = alike_or_before(change(folded), folded, feeds)
    name_nodes(folded)
    inputs = [value.name for value in named.graph.input]
    covered = covered_steps(graph_steps(folded), before, inputs=inputs)
    owners = owners_of(covered, _own(before, table), heavy_ops(table))
    adopt_orphans(graph_steps(folded), owners)
    return {SHARED_KEY: OnnxProgram(folded, tuple(input_names), owners, folded_ops(table, owners))}


def _own(steps: Sequence[GraphStep], table: GraphTable) -> dict[str, tuple[str, ...]]:
    """Node name -> its own op id; constants have none."""
    known = {table.op_id[row] for row in table.op_rows()}
    return {step.name: (step.name,) if step.name in known else () for step in steps}


def _of_least_opset(model: Any) -> Any:
    """The model converted to `_LEAST_OPSET` if its own is older."""
    import onnx.version_converter

    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    if not versions or versions[0] >= _LEAST_OPSET:
        return model
    return onnx.version_converter.convert_version(model, _LEAST_OPSET)


def _folded(model: Any) -> Any:
    """The model with its constants and batch norms folded."""
    import onnxscript.optimizer

    with constants_compared_exactly():
        return onnxscript.optimizer.optimize(model)
