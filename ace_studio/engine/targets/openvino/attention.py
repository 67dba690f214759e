"""Rewrites attention in the exported ONNX model as OpenVINO's own ``ScaledDotProductAttention``.

The exporter writes every ``scaled_dot_product_attention`` as about twenty nodes, with shapes computed at every call.
OpenVINO has the operation itself and runs it, with the transpositions around, as one generated kernel, but does not
recognize the parts. Each is written as one node of our own domain, which `read_onnx` converts to OpenVINO's operation:
an artifact holds no node of ours.
Source: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/sequence/scaled-dot-product-attention.html

Keeps inputs that no op reads: OpenVINO leaves them out when it reads an ONNX model.

Reads ONNX's ``DFT`` and ``STFT`` as OpenVINO's own operations.

OpenVINO's reader writes a transform for every frame of an ``STFT``, so it refuses signals whose sizes are not fixed.
Of a ``DFT`` it counts the axis without the last one, which holds 1 or 2 numbers, and gives spectra of other shapes or
values (2026.4).
Sources: https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/signals.html,
https://onnx.ai/onnx/operators/onnx__DFT.html
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx import masks
from ace_studio.engine.targets.onnx.names import dtype_of, shape_texts, value_names
from ace_studio.engine.targets.onnx.program import OnnxProgram, onnx_program_of
from ace_studio.engine.targets.openvino.library import import_openvino
from ace_studio.records.errors import AceError, ErrorCode

_DOMAIN = "ace.studio"
WHOLE = "WholeAttention"
"""Our node: query, key, value [B, N, S, H] and what is added to the scores; ``scale`` (0: the usual), ``is_causal``."""
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class _Site:
    """One attention: names of its values, all [B, N, positions, H]."""

    op_id: str
    inputs: tuple[str, str, str]
    result: str
    bias: masks.Bias | None
    scale: float
    is_causal: bool


def program_for_openvino(job: LoweringJob) -> OnnxProgram:
    """The job's ONNX model with whole attentions, for `read_onnx`; made at the first call.

    Raises: AceError(UNSUPPORTED) as `onnx_program_of` does.
    """
    key = "onnx_program_with_whole_attention"
    return job.once(key, lambda: with_whole_attention(onnx_program_of(job), job.captured))


def read_onnx(model: Any) -> Any:
    """The ``openvino.Model`` of an ONNX model that may hold whole attentions and spectra of any size.

    Raises: RuntimeError in OpenVINO's words if it cannot read it, AceError(UNSUPPORTED) for a resize that it lacks.
    """
    core = import_openvino().Core()
    from openvino.frontend.onnx import ConversionExtension

    core.add_extension(ConversionExtension(WHOLE, _DOMAIN, _converted))
    core.add_extension(ConversionExtension(STFT, "", converted_stft))
    core.add_extension(ConversionExtension(DFT, "", converted_dft))
    core.add_extension(ConversionExtension(RESIZE, _DOMAIN, converted_resize))
    return with_every_input(core.read_model(_with_filtered_resizes(model).SerializeToString()), model)


def _converted(node: Any) -> list[Any]:
    """OpenVINO's operation for one of our nodes."""
    from openvino import opset13

    inputs = [node.get_input(index) for index in range(node.get_input_size())]
    scale, is_causal = node.get_attribute("scale", 0.0), bool(node.get_attribute("is_causal", 0))
    if scale and len(inputs) == 3:
        inputs.append(opset13.constant(np.float32(0.0)))  # the scale comes behind a mask
    if scale:
        inputs.append(opset13.constant(np.float32(scale)))
    outputs: list[Any] = opset13.scaled_dot_product_attention(*inputs, causal=is_causal).outputs()
    return outputs


def with_whole_attention(program: OnnxProgram, captured: CapturedModel) -> OnnxProgram:
    """The program with one node for each attention that OpenVINO computes as torch does; the others are guarded.

    Args:
        program: The fp32 model; it is not changed.
        captured: The graph it was exported from.
    """
    program = masks.guarded(program, captured)
    attentions = [node for node in captured.program.graph.nodes if node.target is masks.ATTENTION_OPS]
    names = value_names(program, captured) if attentions else {}
    sites = [site for node in attentions if (site := _site_of(node, names, program)) is not None]
    return masks.rewritten(program, sites, _put_in_place, domain=_DOMAIN)


def _site_of(node: fx.Node, names: Mapping[fx.Node, str], program: OnnxProgram) -> _Site | None:
    given = masks.attention_arguments(node)
    parts = [given[name] for name in ("query", "key", "value")]
    shapes = [shape_texts(one) for one in parts]
    if given.get("dropout_p") or any(len(shape) != 4 for shape in shapes) or not names.keys() >= {*parts, node}:
        return None
    heads = {shape[1] for shape in shapes}
    is_causal, mask = bool(given.get("is_causal")), given.get("attn_mask")
    is_square = shapes[0][2] == shapes[1][2]
    if len(heads) > 1 or (is_causal and not is_square) or dtype_of(node) is not torch.float32:
        return None
    if mask is not None and not masks.is_mask(mask, shapes[0], shapes[1][2], heads=("1", *heads)):
        return None
    bias, is_known = masks.bias_of(node.name, mask, program)
    if not is_known:
        return None
    query, key, value = (names[one] for one in parts)
    return _Site(
        node.name, (query, key, value), names[node], bias, scale=float(given.get("scale") or 0.0), is_causal=is_causal
    )


def _put_in_place(graph: Any, site: _Site, owners: dict[str, tuple[str, ...]]) -> None:
    """Write our node in place of the node that made the result; the parts that it replaces are dropped later."""
    from onnx import helper

    replaced = next(node for node in graph.node if site.result in node.output)
    name = replaced.name
    added, has_key, nodes = _masking(graph, site.bias) if site.bias is not None else ("", "", [])
    is_whole = site.bias is not None and site.bias.rank == 4
    turn = _turn_behind(graph, site.result) if has_key and is_whole else None
    made = f"{site.result}.unguarded" if has_key and turn is None else site.result
    inputs = [*site.inputs, *([added] if added else [])]
    attributes = {"scale": site.scale, "is_causal": int(site.is_causal)}
    nodes.append(helper.make_node(WHOLE, inputs, [made], name=name, domain=_DOMAIN, **attributes))
    if made != site.result:
        nodes.append(helper.make_node("Mul", [made, has_key], [site.result], name=f"{name}_guard"))
    behind = _guard_behind(turn, has_key, name) if turn is not None else []
    owners.update({node.name: (site.op_id,) for node in (*nodes, *behind)})
    masks.put_behind(graph, replaced, nodes)
    graph.node.remove(replaced)
    if turn is not None:
        masks.put_behind(graph, turn, behind)


def _turn_behind(graph: Any, result: str) -> Any | None:
    """The transposition of heads and positions behind the attention, if nothing else reads the result."""
    readers = [node for node in graph.node if result in node.input]
    is_given = any(output.name == result for output in graph.output)
    is_turn = len(readers) == 1 and readers[0].op_type == "Transpose" and not is_given
    order = next((list(one.ints) for one in readers[0].attribute if one.name == "perm"), []) if is_turn else []
    return readers[0] if order == [0, 2, 1, 3] else None


def _guard_behind(turn: Any, has_key: str, name: str) -> list[Any]:
    """The guard behind the transposition, so that the transposition stays part of the kernel; renames in place."""
    from onnx import helper

    result = turn.output[0]
    turned, turn.output[0] = f"{result}.has_key", f"{result}.unguarded"
    return [
        helper.make_node("Transpose", [has_key], [turned], name=f"{name}_keys", perm=[0, 2, 1, 3]),
        helper.make_node("Mul", [turn.output[0], turned], [result], name=f"{name}_guard"),
    ]


def _masking(graph: Any, bias: masks.Bias) -> tuple[str, str, list[Any]]:
    """Names of what is added to the scores and of which queries have a key (1 or 0; empty: all have); the new nodes.

    Layers that share a mask share the nodes. torch gives zeros for a query without any key; softmax of minus infinity
    alone is NaN. The lowest finite number instead of minus infinity gives a number, and zero times that is zero.
    """
    if bias.has_keys:
        return bias.name, "", []
    nodes, has_key = masks.key_nodes(graph, bias)
    if math.isfinite(bias.lowest):
        return bias.name, has_key, nodes
    added, lowest = f"{bias.name}.finite", masks.constant(graph, "attention_lowest_finite", _LOWEST)
    if all(added not in node.output for node in graph.node):
        nodes.append(masks.small_node("Max", [bias.name, lowest], added))
    return added, has_key, nodes


def with_every_input(read: Any, model: Any) -> Any:
    """The model with all inputs of the ONNX model, in its order; as it is if it has them.

    Args:
        read: The ``openvino.Model`` that OpenVINO read.
        model: The ``onnx.ModelProto`` that it read.
    """
    from onnx import helper

    openvino = import_openvino()
    wanted = list(model.graph.input)
    found = {name: one for one in read.get_parameters() for name in one.output(0).get_names()}
    if found.keys() >= {entry.name for entry in wanted}:
        return read
    for entry in wanted:
        if entry.name not in found:
            tensor = entry.type.tensor_type
            sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
            dtype = openvino.Type(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            parameter = openvino.opset13.parameter(openvino.PartialShape(sizes), dtype, name=entry.name)
            parameter.output(0).get_tensor().set_names({entry.name})
            found[entry.name] = parameter
    parameters = [found[entry.name] for entry in wanted]
    return openvino.Model(read.get_results(), read.get_sinks(), parameters, read.get_friendly_name())


DFT = "DFT"
STFT = "STFT"
_ABSENT = "NullNode"
"""What the reader gives for an optional input that is not there."""


def converted_stft(node: Any) -> list[Any]:
    """OpenVINO's operation for an ``STFT`` of a real signal [B, T, 1]: [B, frames, frequencies, 2]."""
    from openvino import opset15

    signal, step, window, length = (node.get_input(index) for index in range(4))
    flat = opset15.squeeze(signal, opset15.constant(np.array([2])))
    found = opset15.stft(flat, window, length, step, transpose_frames=False)
    if not node.get_attribute("onesided", 1):  # the other side of a real signal's spectrum is the conjugate of this one
        frequencies = np.arange(int(length.get_node().get_data()))
        mirrored = -frequencies % len(frequencies)
        rows = opset15.constant(np.minimum(frequencies, mirrored))
        signs = np.where((frequencies > mirrored)[:, None], [1, -1], 1).astype(np.float32)
        found = opset15.multiply(opset15.gather(found, rows, opset15.constant(2)), opset15.constant(signs))
    outputs: list[Any] = found.outputs()
    return outputs


def converted_dft(node: Any) -> list[Any]:
    """OpenVINO's operation for a ``DFT`` over one axis of [..., 1] or [..., 2].

    It gives [..., 2], and [..., 1] for the inverse of a one-sided spectrum, which is real.
    """
    from openvino import opset15

    signal, last = node.get_input(0), opset15.constant(np.array([-1]))
    shape = signal.get_partial_shape()
    length, axis = _optional(node, 1), _optional(node, 2)
    # Before opset 20 the axis is an attribute.
    place = int(axis.get_node().get_data()) if axis else node.get_attribute("axis", -2)
    axes = opset15.constant(np.array([place % shape.rank.get_length()]))
    sizes = [opset15.reshape(length, last, special_zero=False)] if length else []
    is_inverse, is_onesided = bool(node.get_attribute("inverse", 0)), bool(node.get_attribute("onesided", 0))
    if is_onesided and is_inverse:
        found = opset15.unsqueeze(opset15.irdft(signal, axes, *sizes), last)
    elif is_onesided:
        found = opset15.rdft(opset15.squeeze(signal, last), axes, *sizes)
    else:
        pairs = signal if shape[-1] == 2 else opset15.concat([signal, opset15.multiply(signal, np.float32(0))], -1)
        found = (opset15.idft if is_inverse else opset15.dft)(pairs, axes, *sizes)
    outputs: list[Any] = found.outputs()
    return outputs


RESIZE = "FilteredResize"
"""Our node: ``Resize`` of pictures [B, C, H, W]; the last two sizes count."""


def _with_filtered_resizes(model: Any) -> Any:
    """The model with a node of ours for each resize with a filter, which OpenVINO reads as one without (2026.4).

    Raises: AceError(UNSUPPORTED) if one has another filter than Pillow and torch.
    """
    from onnx import helper

    found = {
        index: given
        for index, node in enumerate(model.graph.node)
        if node.op_type == "Resize"
        and (given := {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}).get("antialias")
    }
    if not found:
        return model
    changed = type(model)()
    changed.CopyFrom(model)
    changed.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    for index, given in found.items():
        node = changed.graph.node[index]
        is_theirs = given.get("mode") == b"linear" or given.get("cubic_coeff_a") == -0.5
        is_centred = given.get("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
        if not (is_theirs and is_centred and given.get("exclude_outside") and len(node.input) > 3):
            raise AceError.of(
                ErrorCode.UNSUPPORTED,
                f"OpenVINO has no resize with the filter of {node.name or node.output[0]}",
                why="it filters as Pillow and torch do, by sizes, with -0.5 and without what lies outside",
                remedy="Choose another target, or export the model with a newer torch.",
            )
        node.op_type, node.domain = RESIZE, _DOMAIN
        node.input[:] = [node.input[0], node.input[3]]
    return changed


def converted_resize(node: Any) -> list[Any]:
    """OpenVINO's operation with the filter of Pillow."""
    from openvino import opset13

    last = opset13.gather(node.get_input(1), opset13.constant(np.array([-2, -1])), opset13.constant(0))
    mode = "bicubic_pillow" if node.get_attribute("mode", "nearest") == "cubic" else "bilinear_pillow"
    none, axes = [0] * 4, opset13.constant(np.array([2, 3]))
    made = opset13.interpolate(node.get_input(0), last, mode, "sizes", none, none, cube_coeff=-0.5, axes=axes)
    outputs: list[Any] = made.outputs()
    return outputs


def _optional(node: Any, index: int) -> Any:
    """An input, or None if it is not there."""
    given = node.get_input(index) if index < node.get_input_size() else None
    return None if given is None or given.get_node().get_type_name() == _ABSENT else given
