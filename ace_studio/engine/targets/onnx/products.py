"""Writes products with a stored factor as ``MatMul``, the only product that the integer and packed kernels take."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

_WRITTEN_OTHERWISE = frozenset({"Gemm", "Einsum"})


def as_matmuls(model: Any, names: Collection[str]) -> list[str]:
    """Turn the named ``Gemm`` and ``Einsum`` nodes with a stored factor into ``MatMul``, in place.

    Returns: The names of all ``MatMul`` nodes among them and made of them that multiply with a stored matrix.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    fit, rebuilt = [], []
    for node in model.graph.node:
        made = [node]
        if node.name in names and node.op_type in _WRITTEN_OTHERWISE and not unfit(node, constants):
            write = _gemm_as_matmul if node.op_type == "Gemm" else _einsum_as_matmul
            made = list(write(model, node, constants))
        rebuilt += made
        if node.name in names:
            constants |= {tensor.name: tensor for tensor in model.graph.initializer[len(constants) :]}
            fit += [one.name for one in made if one.op_type == "MatMul" and not unfit(one, constants)]
    model.graph.ClearField("node")
    model.graph.node.extend(rebuilt)
    drop_unused_constants(model)
    return fit


def store_transposed(model: Any, readers: Collection[str] = ()) -> bool:
    """Store weights as they are read through a ``Transpose``, in place: a quantizer takes stored factors only.

    A weight that is only read so, as layers that share it do, is stored transposed. One that is read as it is too, as
    the table of a tied embedding, gets a transposed copy for the nodes in ``readers`` only.

    Returns: Whether there was such a weight.
    """
    from onnx import numpy_helper

    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found: dict[str, list[Any]] = {}
    for node in model.graph.node:
        for name in set(names_read(node)):
            found.setdefault(name, []).append(node)
    results = {output.name for output in model.graph.output}
    idle = set()
    is_changed = False
    for node in [node for node in model.graph.node if node.op_type == "Transpose" and node.input[0] in constants]:
        order = _attribute(node, "perm", None)
        is_always = all(
            one.op_type == "Transpose" and _attribute(one, "perm", None) == order for one in found[node.input[0]]
        )
        around = found.get(node.output[0], [])
        chosen = [one for one in around if node.output[0] in one.input and (is_always or one.name in readers)]
        if not chosen or (is_always and node.output[0] in results):
            continue
        stored = "_".join([node.input[0], "transposed", *map(str, order or ())])
        if stored not in constants:
            array = np.transpose(numpy_helper.to_array(constants[node.input[0]]), order)
            model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), stored))
            constants[stored] = model.graph.initializer[-1]
        is_changed = True
        for one in chosen:
            one.input[:] = [stored if name == node.output[0] else name for name in one.input]
        idle |= {node.output[0]} if len(chosen) == len(around) else set()
    kept = [node for node in model.graph.node if not idle.intersection(node.output)]
    model.graph.ClearField("node")
    model.graph.node.extend(kept)
    drop_unused_constants(model)
    return is_changed


def unfit(node: Any, constants: Mapping[str, Any]) -> str:
    """Why no ``MatMul`` with a stored matrix can be made of a node; empty if one can, or if it is no product."""
    if node.op_type not in {"MatMul", *_WRITTEN_OTHERWISE}:
        return ""
    stored = [name in constants for name in node.input[:2]]
    if not any(stored):
        return f"both factors of {node.op_type} are computed while the model runs, and 8-bit weights are stored ones"
    if node.op_type == "Einsum":
        equation = _attribute(node, "equation", b"").decode()
        return "" if _einsum_parts(equation, stored) else f"'{equation}' is no product of rows with one stored matrix"
    if not stored[1]:
        return f"the stored factor of {node.op_type} comes first, and the kernel takes it as the second factor only"
    dims = len(constants[node.input[1]].dims)
    if dims != 2:
        return f"the stored factor of {node.op_type} has {dims} dimension(s), and the kernel takes matrices only"
    if node.op_type == "Gemm" and _attribute(node, "transA", 0):
        return "the Gemm transposes what it reads"
    if node.op_type == "Gemm" and _attribute(node, "beta", 1.0) != 1.0 and node.input[2] not in constants:
        return "the Gemm scales a term that is computed while the model runs"
    return ""


def _gemm_as_matmul(model: Any, node: Any, constants: Mapping[str, Any]) -> Iterator[Any]:
    from onnx import helper, numpy_helper

    weight = numpy_helper.to_array(constants[node.input[1]]) * np.float32(_attribute(node, "alpha", 1.0))
    matrix = weight.T if _attribute(node, "transB", 0) else weight
    if len(node.input) < 3:
        yield _matmul(model, node, node.input[0], matrix, node.output[0])
        return
    beta, bias = _attribute(node, "beta", 1.0), node.input[2]
    if beta != 1.0:
        scaled = numpy_helper.to_array(constants[bias]) * np.float32(beta)
        bias = f"{node.name}_scaled_bias"
        model.graph.initializer.append(numpy_helper.from_array(scaled, bias))
    yield _matmul(model, node, node.input[0], matrix, f"{node.output[0]}_product")
    yield helper.make_node("Add", [f"{node.output[0]}_product", bias], list(node.output), name=node.name)


def _einsum_as_matmul(model: Any, node: Any, constants: Mapping[str, Any]) -> Iterator[Any]:
    """Move the summed dimensions of the computed factor to its end, multiply, and move the new ones where they belong.

    A size of 0 in a ``Reshape`` keeps the dimension, so every size but the weight's may be dynamic.
    """
    from onnx import helper, numpy_helper

    place = next(place for place, name in enumerate(node.input) if name in constants)
    parts = _einsum_parts(_attribute(node, "equation", b"").decode(), [index == place for index in range(2)])
    assert parts is not None  # `unfit` looked
    data, weight, result = parts
    kept, summed = [one for one in data if one not in weight], [one for one in weight if one in data]
    new = [one for one in weight if one not in data]
    stored = numpy_helper.to_array(constants[node.input[place]]).transpose([weight.index(one) for one in summed + new])
    sizes = {one: stored.shape[index] for index, one in enumerate(summed + new)}
    value = node.input[1 - place]

    def step(kind: str, count: int, inputs: list[str], **settings: Any) -> Any:
        name = f"{node.name}_step_{count}"
        return helper.make_node(kind, inputs, [name], name=name, **settings)

    def reshaped(count: int, source: str, tail: list[int]) -> Any:
        shape = f"{node.name}_shape_{count}"
        model.graph.initializer.append(numpy_helper.from_array(np.array([0] * len(kept) + tail), shape))
        return step("Reshape", count, [source, shape])

    width = int(np.prod([sizes[one] for one in summed]))
    moved = step("Transpose", 0, [value], perm=[data.index(one) for one in kept + summed])
    flat = reshaped(1, moved.output[0], [width])
    product = _matmul(model, node, flat.output[0], stored.reshape(width, -1), f"{node.name}_step_2")
    product.name = node.name  # the other steps may be optimized away, and the op with them
    parted = reshaped(3, product.output[0], [sizes[one] for one in new])
    order = [(kept + new).index(one) for one in result]
    yield from (moved, flat, product, parted)
    yield helper.make_node("Transpose", [parted.output[0]], list(node.output), name=f"{node.name}_step_4", perm=order)


def _einsum_parts(equation: str, stored: list[bool]) -> tuple[str, str, str] | None:
    """Letters of the computed factor, of the stored one and of the result; None if it is no plain matrix product."""
    sources, _, result = equation.replace(" ", "").partition("->")
    terms = sources.split(",")
    if len(terms) != 2 or sum(stored) != 1 or not result or "." in equation:
        return None
    data, weight = terms if stored[1] else terms[::-1]
    summed, outer = set(data) & set(weight), set(data) ^ set(weight)
    is_plain = all(len(set(term)) == len(term) for term in (data, weight, result))
    return (data, weight, result) if is_plain and summed and set(weight) - summed and outer == set(result) else None


def _matmul(model: Any, node: Any, source: str, matrix: np.ndarray, result: str) -> Any:
    from onnx import helper, numpy_helper

    name = f"{node.name}_product"
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(matrix), f"{name}_weight"))
    return helper.make_node("MatMul", [source, f"{name}_weight"], [result], name=name)


def _attribute(node: Any, name: str, default: Any) -> Any:
    from onnx import helper

    return next((helper.get_attribute_value(one) for one in node.attribute if one.name == name), default)


def drop_unused_constants(model: Any) -> None:
    """Remove, in place, the constants that no node reads; the nodes may stand in any order."""
    used = {name for node in model.graph.node for name in names_read(node)}
    used |= {output.name for output in model.graph.output}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    model.graph.ClearField("initializer")
    model.graph.initializer.extend(kept)


def names_read(node: Any) -> Iterator[str]:
    """Names of the values that a node reads, in its own graphs too: an ``If`` or a ``Loop`` sees those around it."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from names_read(inner)
