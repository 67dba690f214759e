"""Pieces of a dynamic size (``chunk``, ``split``) as slices, which need no sequence of tensors."""

from typing import Any


def pieces_as_slices(graph: Any) -> None:
    """Replace each ``SplitToSequence`` of a size that is not known by one slice for every piece that is read.

    The exporter's optimizer makes a ``Split`` of the others, and fails at these (onnxscript 0.7).
    """
    for split in [node for node in graph if node.op_type == "SplitToSequence"]:
        found = {use.node: _place(use.node) for use in split.outputs[0].uses()}
        places = {reader: place for reader, place in found.items() if place is not None}
        if places == found and not split.outputs[0].is_graph_output() and _is_of_unknown_size(split):
            _write_slices(graph, split, places)


def _place(reader: Any) -> int | None:
    """The index of the piece that a node takes out; None if it is another node, or the index is computed."""
    import onnx_ir

    index = onnx_ir.convenience.get_const_tensor(reader.inputs[1]) if reader.op_type == "SequenceAt" else None
    return None if index is None or index.numpy().item() < 0 else int(index.numpy().item())


def _is_of_unknown_size(split: Any) -> bool:
    source, size = split.inputs
    if size.shape is None or len(size.shape) or source.shape is None:
        return False
    return not isinstance(source.shape[split.attributes["axis"].as_int()], int)


def _write_slices(graph: Any, split: Any, places: dict[Any, int]) -> None:
    import onnx_ir

    source, size = split.inputs
    axis = split.attributes["axis"].as_int()
    for reader, place in places.items():
        numbers = [onnx_ir.node("Constant", [], {"value_ints": [one]}) for one in (place, place + 1, axis)]
        begin, end = (onnx_ir.node("Mul", [size, number.outputs[0]]) for number in numbers[:2])
        piece = onnx_ir.node("Slice", [source, begin.outputs[0], end.outputs[0], numbers[2].outputs[0]])
        made = [*numbers, begin, end, piece]
        for node in made:
            node.metadata_props.update(reader.metadata_props)
        piece.outputs[0].name = reader.outputs[0].name
        piece.outputs[0].type, piece.outputs[0].shape = source.type, reader.outputs[0].shape
        onnx_ir.convenience.replace_nodes_and_values(
            graph, reader, [reader], made, [reader.outputs[0]], [piece.outputs[0]]
        )
    graph.remove(split, safe=True)
