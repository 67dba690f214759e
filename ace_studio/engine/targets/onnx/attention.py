"""Rewrites attention in the exported ONNX model as ONNX Runtime's ``MultiHeadAttention`` kernel.

The exporter writes every ``scaled_dot_product_attention`` as about twenty nodes, which take a fifth of the time of a
small call and which ONNX Runtime does not fuse. The captured graph says where they are. ``MultiHeadAttention`` reads
the projections directly, so that the transposes and reshapes around disappear too.
Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MultiHeadAttention
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx import masks
from ace_studio.engine.targets.onnx.names import VIEWS, changes_nothing, dtype_of, shape_texts, value_names
from ace_studio.engine.targets.onnx.program import OnnxProgram, onnx_program_of
from ace_studio.engine.torch_private.sizes import size_hint

DOMAIN = "com.microsoft"
MOST_SCORES = 16_384
"""Scores (B x N x S x T) of the traced example up to which one kernel is faster than the parts.

The parts cost about 2 us each to begin with; beyond that, matrix products of their own are as fast or a little faster.
Measured with int8-dynamic MiniLM, B x T: 1 x 3 1.17-1.20x, 1 x 16 1.03x, 8 x 16 and 8 x 32 0.98-1.02x.
"""
_ATEN = torch.ops.aten
_SWAPS: Mapping[Any, Sequence[object]] = {
    _ATEN.transpose.int: ((1, 2), (2, 1), (-3, -2), (-2, -3)),
    _ATEN.permute.default: ([0, 2, 1, 3],),
}
"""Operator -> arguments with which it changes places of heads and positions."""


@dataclass(frozen=True)
class _Attention:
    """An attention that the kernel can compute. Sizes: B batch, N heads, S queries, T keys, H width of a head."""

    op_id: str
    query: str
    """Value [B, S, N x H]."""
    key: str
    """Value [B, T, N x H], or [B, N, T, H]; the value has the same form."""
    value: str
    result: str
    """Value [B, S, N x H] that replaces the result of the reshape behind the attention."""
    heads: int
    bias: masks.Bias | None
    scale: float | None
    is_causal: bool


def program_with_attention(job: LoweringJob) -> OnnxProgram:
    """The job's ONNX model with its attentions rewritten, made at the first call.

    Raises: AceError(UNSUPPORTED) as `onnx_program_of` does.
    """
    return job.once("onnx_program_with_attention", lambda: fuse_attention(onnx_program_of(job), job.captured))


def fuse_attention(program: OnnxProgram, captured: CapturedModel) -> OnnxProgram:
    """The program with one node for each attention that the kernel can compute; the others are guarded.

    Args:
        program: The fp32 model; it is not changed.
        captured: The graph it was exported from.
    """
    program = masks.guarded(program, captured)
    names = value_names(program, captured)
    sites = [
        found for node in captured.program.graph.nodes if (found := _attention_of(node, names, program)) is not None
    ]
    return masks.rewritten(program, sites, _put_in_place, domain=DOMAIN)


def _attention_of(node: fx.Node, names: Mapping[fx.Node, str], program: OnnxProgram) -> _Attention | None:
    if node.target is not masks.ATTENTION_OPS:
        return None
    given = masks.attention_arguments(node)
    query, key, value = given["query"], given["key"], given["value"]
    shapes = [shape_texts(one) for one in (query, key, value)]
    if given.get("dropout_p") or given.get("enable_gqa") or any(len(one) != 4 for one in shapes):
        return None
    (_, heads, queries, width), (_, key_heads, keys, _), (_, value_heads, _, _) = shapes
    is_fixed = heads.isdecimal() and width.isdecimal() and heads == key_heads == value_heads
    is_causal = bool(given.get("is_causal"))
    if (
        not is_fixed
        or _scores(query, key) > MOST_SCORES
        or (is_causal and queries != keys)
        or dtype_of(query) is not torch.float32
    ):
        return None  # a causal mask of torch begins at the first key, one of the kernel ends at the last
    mask = given.get("attn_mask")
    if mask is not None and not masks.is_mask(mask, shapes[0], keys):
        return None
    rows, result = _rows_of(query), _result_of(node)
    pair = [_rows_of(key), _rows_of(value)]
    key_rows, value_rows = (pair[0] or key, pair[1] or value) if all(pair) else (key, value)
    if rows is None or result is None or not names.keys() >= {rows, result, key_rows, value_rows}:
        return None
    bias, is_known = masks.bias_of(node.name, mask, program)
    if not is_known:
        return None
    scale = given.get("scale")
    return _Attention(
        op_id=node.name,
        query=names[rows],
        key=names[key_rows],
        value=names[value_rows],
        result=names[result],
        heads=int(heads),
        bias=bias,
        scale=None if scale is None else float(scale),
        is_causal=is_causal,
    )


def _scores(query: fx.Node, key: fx.Node) -> int:
    """Number of scores in the traced example; 0 if a size depends on values."""
    batch, heads, queries, _ = (size_hint(size) for size in query.meta["val"].shape)
    return batch * heads * queries * size_hint(key.meta["val"].shape[2])


def _is_swap(node: Any) -> bool:
    """Whether heads and positions change places."""
    return isinstance(node, fx.Node) and _arguments_after_first(node) in _SWAPS.get(node.target, ())


def _arguments_after_first(node: fx.Node) -> Any:
    rest = tuple(node.args[1:])
    return rest[0] if len(rest) == 1 else rest


def _rows_of(node: Any) -> fx.Node | None:
    """The value [B, S, N x H] that a value [B, N, S, H] is another view of."""
    if not _is_swap(node):
        return None
    split = node.args[0]
    if split.target not in VIEWS:
        return None
    source = split.args[0]
    wide, narrow = shape_texts(split), shape_texts(source)
    return source if len(wide) == 4 and len(narrow) == 3 and wide[:2] == narrow[:2] else None


def _result_of(attention: fx.Node) -> fx.Node | None:
    """The value [B, S, N x H] that the attention's result is reshaped to, if nothing else reads the result."""
    node = attention
    is_swapped = False
    while len(node.users) == 1:
        node = next(iter(node.users))
        if changes_nothing(node):
            continue
        if not is_swapped and _is_swap(node):
            is_swapped = True
            continue
        source = shape_texts(node.args[0])
        is_joined = is_swapped and node.target in VIEWS and len(source) == 4
        shape = shape_texts(node)
        return node if is_joined and len(shape) == 3 and shape[:2] == source[:2] else None
    return None


def _put_in_place(graph: Any, site: _Attention, owners: dict[str, tuple[str, ...]]) -> None:
    """Write the kernel in place of the node that made the result; the parts that it replaces are dropped later."""
    from onnx import helper

    replaced = next(node for node in graph.node if site.result in node.output)
    name = f"{site.op_id}_kernel"
    nodes: list[Any] = []
    bias = row_has_key = ""
    if site.bias is not None:
        bias, row_has_key, nodes = _masking(graph, site.bias, site.query)
    attributes: dict[str, Any] = {"num_heads": site.heads}
    attributes |= {} if site.scale is None else {"scale": site.scale}
    attributes |= {"unidirectional": 1} if site.is_causal else {}
    given = f"{site.result}.unguarded" if row_has_key else site.result
    inputs = [site.query, site.key, site.value, *(["", "", bias] if bias else [])]
    nodes.append(helper.make_node("MultiHeadAttention", inputs, [given], name=name, domain=DOMAIN, **attributes))
    if row_has_key:
        zero = masks.constant(graph, "attention_zero", 0.0)
        nodes.append(helper.make_node("Where", [row_has_key, given, zero], [site.result], name=f"{name}_guard"))
    ids = dict.fromkeys([site.op_id, *owners.get(replaced.name, ())])
    owners.update({node.name: tuple(ids) for node in nodes})
    masks.put_behind(graph, replaced, nodes)
    graph.node.remove(replaced)


def _masking(graph: Any, bias: masks.Bias, query: str) -> tuple[str, str, list[Any]]:
    """Names of what is added to the scores [B or 1, 1, S, T] and of which queries have a key [B or 1, S, 1]; new nodes.

    Layers that share a mask share the nodes. torch gives zeros for a query without any key, softmax gives NaN.
    """
    made = {value for node in graph.node for value in node.output}
    lacking = 4 - bias.rank
    added, has_key = f"{bias.name}.four" if lacking else bias.name, ""
    nodes = []
    if lacking:
        axes = masks.constant(graph, f"attention_axes_{lacking}", list(range(lacking)))
        nodes.append(masks.small_node("Unsqueeze", [bias.name, axes], added))
    if not bias.has_keys:
        counting, counted = masks.key_nodes(graph, bias)
        has_key = f"{counted}.rows"
        axes = masks.constant(graph, "attention_heads_axis", [1])
        nodes += [*counting, masks.small_node("Squeeze", [f"{counted}.some", axes], has_key)]
    if bias.is_row:  # the kernel does not repeat one row for all queries by itself
        row, added = added, f"{added}.to.{query}"
        nodes += _repeated_nodes(graph, row, query, added)
    return added, has_key, [node for node in nodes if node.output[0] not in made]


def _repeated_nodes(graph: Any, row: str, query: str, added: str) -> Iterator[Any]:
    one = masks.constant(graph, "attention_one", [1])
    yield masks.small_node("Shape", [query], f"{added}.queries", start=1, end=2)
    yield masks.small_node("Concat", [one, one, f"{added}.queries", one], f"{added}.shape", axis=0)
    yield masks.small_node("Expand", [row, f"{added}.shape"], added)
