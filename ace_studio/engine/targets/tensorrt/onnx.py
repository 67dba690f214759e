"""The quantized ONNX model in the form that TensorRT reads: signed values, grids around 0, floating-point biases.

TensorRT's quantized types have no zero point and no unsigned 8 bits, and its strongly typed networks compute exactly
where a pair stands. So every unsigned grid is replaced by the signed one around 0 that covers it, and 32-bit biases are
written as floats again.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from ace_studio.engine.targets.onnx.products import drop_unused_constants

_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear"})


def signed_model(model: Any) -> Any:
    """A copy of a model with pairs (``QuantizeLinear`` / ``DequantizeLinear``) that TensorRT takes.

    A grid of scale s and zero point z over 0..255 covers [-z s, (255 - z) s]; the signed one that covers it has scale
    ``max(z, 255 - z) s / 127``. The plan must have symmetric activations: with affine ones the quantizer removes ReLUs
    whose work the lower end of the grid does. A value behind a ReLU has 127 levels, not 255.

    Raises: ValueError if the scale or the zero point of a pair is computed, not stored.
    """
    changed = copy.deepcopy(model)
    constants = _constants_of(changed)
    made: dict[str, np.ndarray[Any, Any]] = {}
    kept = []
    for node in changed.graph.node:
        if node.op_type not in _QUANTIZERS:
            kept.append(node)
        elif _is_stored_bias(node, constants):
            made[node.output[0]] = _dequantized(node, constants)
        else:
            _make_signed(node, constants, made)
            kept.append(node)
    changed.graph.ClearField("node")
    changed.graph.node.extend(kept)
    _store(changed, made)
    return changed


def _constants_of(model: Any) -> dict[str, np.ndarray[Any, Any]]:
    import onnx

    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _is_stored_bias(node: Any, constants: Mapping[str, np.ndarray[Any, Any]]) -> bool:
    stored = constants.get(node.input[0])
    return stored is not None and stored.dtype == np.int32


def _grid(
    node: Any, constants: Mapping[str, np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Scale and zero point of a quantizing node."""
    names = list(node.input[1:3])
    if any(name not in constants for name in names):
        raise ValueError(f"the grid of {node.name} is computed, not stored")
    scale = constants[names[0]]
    zero = constants[names[1]] if len(names) > 1 else np.zeros(scale.shape, np.uint8)
    return scale, zero


def _axis(node: Any) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 1)


def _along(values: np.ndarray[Any, Any], node: Any, rank: int) -> np.ndarray[Any, Any]:
    """A grid's numbers in a shape that multiplies a tensor of ``rank`` dimensions."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * rank
    shape[_axis(node)] = values.size
    return values.reshape(shape)


def _dequantized(node: Any, constants: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    stored = constants[node.input[0]]
    scale, zero = (_along(one, node, stored.ndim) for one in _grid(node, constants))
    result = (stored.astype(np.float64) - zero.astype(np.float64)) * scale.astype(np.float64)
    return np.asarray(result.astype(np.float32))


def _make_signed(
    node: Any, constants: Mapping[str, np.ndarray[Any, Any]], made: dict[str, np.ndarray[Any, Any]]
) -> None:
    """Give a node the signed grid around 0; stored 8-bit weights that lie around 0 already stay as they are."""
    scale, zero = _grid(node, constants)
    if zero.dtype == np.int8 and not zero.any():
        return
    below, above = (zero.astype(np.float64), 255.0 - zero) if zero.dtype == np.uint8 else (zero + 128.0, 127.0 - zero)
    wide = (np.maximum(below, above) * scale / 127.0).astype(np.float32)
    stored = constants.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
    if stored is not None:  # weights: their numbers change with the grid
        real = (stored.astype(np.float64) - _along(zero, node, stored.ndim)) * _along(scale, node, stored.ndim)
        codes = np.clip(np.rint(real / _along(wide, node, stored.ndim)), -127, 127).astype(np.int8)
        node.input[0] = _named(made, f"{node.input[0]}_signed", codes)
    node.input[1] = _named(made, f"{node.input[1]}_signed", wide)
    zeros = _named(made, f"{node.input[1]}_zero", np.zeros(wide.shape, np.int8))
    del node.input[2:]
    node.input.append(zeros)


def _named(made: dict[str, np.ndarray[Any, Any]], name: str, value: np.ndarray[Any, Any]) -> str:
    made[name] = value
    return name


def _store(model: Any, made: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Add the new constants, and drop those that nobody reads any more."""
    import onnx

    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in made.items()
    )
    drop_unused_constants(model)
    model.graph.ClearField("value_info")  # it speaks of unsigned values
