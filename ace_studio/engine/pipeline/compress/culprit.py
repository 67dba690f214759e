"""Finds the op whose value a runtime computes otherwise than eager, by a search for the first value that differs.

One value at a time becomes the only output of the model: with all of them at once the runtime would not fuse ops, and a
fusion may be the fault.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from ace_studio.engine.capture.verify import difference
from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.quantize.flat_graph import OP_ID, flat_graph
from ace_studio.engine.targets.onnx.names import value_names
from ace_studio.engine.targets.onnx.program import SHARED_KEY, OnnxProgram
from ace_studio.engine.targets.onnxruntime.target import make_session
from ace_studio.engine.targets.openvino.target import OpenVinoSession

_SESSIONS: dict[str, Callable[[Any, int], Any]] = {
    "onnxruntime": lambda model, threads: make_session(model.SerializeToString(), threads=threads),
    "openvino": lambda model, threads: OpenVinoSession(model, threads=threads),
}
"""Target -> what opens an ONNX model there."""
LARGEST_BYTES = 1 << 30
"""Models whose values take more are not searched."""


def first_wrong(
    captured: CapturedModel, target: str, example: Example, *, shared: Mapping[str, Any], threads: int
) -> str:
    """Id of the first op whose value differs on an example; empty if none was found, or the target shows no values."""
    program: OnnxProgram | None = shared.get(SHARED_KEY)
    if program is None or target not in _SESSIONS or not captured.has_eager_ops:
        return ""
    names, values = value_names(program, captured), _values(captured, example)
    made = {name for node in program.model.graph.node for name in node.output}
    rows = [(node.name, names[node]) for node in captured.program.graph.nodes if names.get(node) in made]
    rows = [(op_id, name) for op_id, name in rows if isinstance(values.get(op_id), Tensor)]
    feed = dict(zip(program.input_names, [leaf.numpy() for leaf in example.tensors()], strict=True))

    def differs(at: int) -> bool:
        op_id, name = rows[at]
        session = _SESSIONS[target](_cut(program.model, name, values[op_id]), threads)
        used = {one.name for one in session.get_inputs()} if hasattr(session, "get_inputs") else set(feed)
        (got,) = session.run([name], {key: value for key, value in feed.items() if key in used})
        return bool(difference([values[op_id]], [torch.from_numpy(np.array(got))]))

    low, high = -1, len(rows) - 1
    if high < 0 or not differs(high):
        return ""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    return str(rows[high][0])


def _values(captured: CapturedModel, example: Example) -> dict[str, Tensor]:
    """Op id -> its value in eager."""
    found: dict[str, Tensor] = {}
    held = 0

    class Keeps(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            nonlocal held
            value = super().run_node(n)
            if isinstance(value, Tensor) and OP_ID in n.meta and held < LARGEST_BYTES:
                found[n.meta[OP_ID]] = value.detach().clone()
                held += value.nbytes
            return value

    with torch.no_grad():
        Keeps(flat_graph(captured.program)).run(*example.copied().tensors())
    return found


def _cut(model: Any, name: str, value: Tensor) -> Any:
    """The part of an ONNX model that makes one value, which is its only output."""
    import onnx  # noqa: PLC0415 - may not be installed

    needed, kept = {name}, []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_read_by(node))
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    for field in (cut.graph.node, cut.graph.output):
        del field[:]
    cut.graph.node.extend(reversed(kept))
    element = onnx.helper.np_dtype_to_tensor_dtype(value.numpy().dtype)
    cut.graph.output.append(onnx.helper.make_tensor_value_info(name, element, None))
    return cut


def _read_by(node: Any) -> set[str]:
    """What a node reads, in its branches and bodies too."""
    graphs = (graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs))
    return {*node.input, *(name for graph in graphs for one in graph.node for name in _read_by(one))}
