"""Converts the captured graph to a float LiteRT model whose tensors are named after the ops that make them.

litert-torch names the tensors of a model by the module of each node (``nn_module_stack``), and keeps the name through
all of its rewriting; where ops are fused, the names are joined. So each node gets its op id as its module.

Dynamic sizes are left out of the conversion: litert-torch 0.10 fails at a linear layer with a dynamic batch. The graph
is converted at two sizes, and what differs between the two files is what has to stay open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.targets.litert.names import ids_in, kind_names, name_of
from ace_studio.engine.targets.litert.open_sizes import OpenSizesError, with_open_sizes
from ace_studio.engine.targets.shared.carried_ids import carried_id, carry_ids
from ace_studio.engine.torch_private.exporting import export_program


def float_model(graph_module: fx.GraphModule, captured: CapturedModel) -> bytes:
    """The content of a ``.tflite`` file that computes a `flat_graph` in fp32.

    Raises: OpenSizesError if a size cannot stay open; what litert-torch raises for a graph that it cannot convert.
    """
    from ai_edge_litert.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model_from_bytearray(bytearray(_converted(graph_module, captured.example)))
    if any(captured.dynamic_dims()):
        other = _converted(graph_module, _of_other_sizes(captured))
        with_open_sizes(model, flatbuffer_utils.read_model_from_bytearray(bytearray(other)), kind_names())
    _name_outputs(model, graph_module)
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _of_other_sizes(captured: CapturedModel) -> Example:
    """An example with another size in each dynamic dimension, which is not 1: the converter leaves such ones out.

    Raises: OpenSizesError if there is none.
    """
    traced = captured.example.tensors()
    for example in captured.examples:
        pairs = zip(traced, example.tensors(), captured.dynamic_dims(), strict=True)
        if all(other.shape[dim] not in (one.shape[dim], 1) for one, other, dims in pairs for dim in dims):
            return example
    raise OpenSizesError("no example differs from the traced one in every dynamic size")


def _converted(graph_module: fx.GraphModule, example: Example) -> bytes:
    """The model at the sizes of an example."""
    inputs = tuple(tensor.contiguous() for tensor in example.tensors())
    with torch.no_grad(), hushed():
        import litert_torch

        program = export_program(graph_module, inputs, {}, dynamic_shapes=None, strict=False)
        _name_after_ops(graph_module.graph, program.graph)
        # It exports the module itself, which would lose the names, so it is handed the program.
        with replaced_attribute(torch.export, "export", lambda *_, **__: program):
            model: Any = litert_torch.convert(graph_module.eval(), inputs)
        return bytes(model.model_content())


def _name_after_ops(old: fx.Graph, new: fx.Graph) -> None:
    """Write the op ids where litert-torch looks for names."""
    carry_ids(old, new)
    for node in new.nodes:
        if node.op == "call_function":
            op_id = carried_id(node)
            node.meta["nn_module_stack"] = {"": ("", name_of(op_id))} if op_id else {}


def _name_outputs(model: Any, graph_module: fx.GraphModule) -> None:
    """Name each output of the model after its op: the converter has given it a name of its own."""
    graph = model.subgraphs[0]
    results: Any = graph_module.graph.output_node().args[0]
    for place, node in zip(graph.outputs, results, strict=True):
        meta: Mapping[str, Any] = node.meta
        if OP_ID in meta and not ids_in(graph.tensors[place].name.decode()):
            graph.tensors[place].name = f"{name_of(meta[OP_ID])};output_{place}".encode()
