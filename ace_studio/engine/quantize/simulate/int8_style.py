"""What families of runtimes round around ops at int8-static, and which values of a graph that is under a plan.

All of them read the factors of a product in 8 bits. They differ in what else is rounded: the results, for whom, and
which ops go on in 8 bits behind a product.

- ``READS``: only what an 8-bit op reads is rounded, and for it alone. torch's PT2E graphs, NNCF's models.
- ``PAIRS``: ONNX models of pairs of QuantizeLinear and DequantizeLinear. Every 8-bit op has an 8-bit result, except for
  a matrix product that only float ops read, or whose bias is a sum of its own. Much goes on in 8 bits behind a product.
- ``RESULTS``: reads as above, and every 8-bit op has an 8-bit result. XNNPACK.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, fx

from ace_studio.engine.ops.families import (
    ADDING_OPS,
    AVERAGE_POOLS,
    CLAMPS,
    IDENTITIES,
    LAYOUT_OPS,
    LEAKY_RELUS,
    MAX_POOLS,
    RELUS,
    aten_ops,
)
from ace_studio.engine.ops.roles import is_convolution, is_product, op_role
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.recipes.plan import ActivationGrid, Scheme

_SAME_VALUES = MAX_POOLS | aten_ops(
    "view.default reshape.default flatten.using_ints _unsafe_view.default transpose.int permute.default t.default"
    " squeeze.default squeeze.dim squeeze.dims unsqueeze.default chunk.default split.Tensor split_with_sizes.default"
)
"""Ops besides identities that only pass 8-bit values on. Fewer than `LAYOUT_OPS`: QuantizeLinear and DequantizeLinear
are put around these in ONNX models, and not around a slice or a padding."""
SAME_GRID = _SAME_VALUES | AVERAGE_POOLS
"""Ops whose result is on the grid of what they read."""
PASSING = IDENTITIES | _SAME_VALUES
"""Ops that change no value, so that rounding behind them changes none either."""
_OWN_GRID = LEAKY_RELUS | aten_ops("adaptive_avg_pool2d.default cat.default")
_BEHIND_PRODUCTS = (
    CLAMPS | LEAKY_RELUS | MAX_POOLS | AVERAGE_POOLS | aten_ops("adaptive_avg_pool2d.default batch_norm.default")
)
"""Ops behind a product that targets do in 8 bits with it."""
SMALL_SHARE = 0.1
"""A last convolution with less than this part of the weights is left float where its result would be 8-bit scores."""


@dataclass(frozen=True)
class Int8Style:
    """One family."""

    name: str
    followers: frozenset[str] = frozenset()
    """Ops besides products that are done in 8 bits if all that they read is 8-bit."""
    leaders: frozenset[str] = frozenset()
    """Ops besides products that are done in 8 bits wherever they are planned so."""
    clamps: frozenset[str] = frozenset()
    """Ops that the kernel in front of them does too, if nobody else reads its result."""
    rounds_results: bool = False
    """Whether 8-bit ops have 8-bit results."""
    clamps_follow: bool = False
    """Whether a kernel does only clamps that are planned 8-bit too, and that have an affine grid."""
    gives_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether a product's result is float whoever reads it."""
    can_give_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether a product's result stays float where only float ops read it."""
    adds_constants_in_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether a sum is one of a product and a stored tensor (a bias, a causal mask) that is left to float."""
    keeps_small_ends: bool = False
    """Whether a small convolution without a product behind it is left float."""


def _is_matrix_product(node: fx.Node) -> bool:
    return is_product(str(node.target)) and not is_convolution(str(node.target))


def _has_bias_of_its_own(node: fx.Node) -> bool:
    """Whether ONNX has a product and a sum for it: a linear layer with a bias on more than two dimensions."""
    value = node.meta.get("val")
    has_bias = len(node.args) > 2 and node.args[2] is not None
    is_linear = str(node.target) == "aten.linear.default"
    return is_linear and has_bias and isinstance(value, Tensor) and value.dim() != 2


def _is_sum_with_stored(node: fx.Node) -> bool:
    """Whether ONNX has it as a sum of a ``MatMul`` and a constant."""
    computed = _inputs(node)
    if str(node.target) not in ADDING_OPS or _adds_two(node) or len(computed) != 1:
        return False
    product = _maker(computed[0])
    is_gemm = str(product.target) == "aten.addmm.default" or (
        str(product.target) == "aten.linear.default" and len(product.args) > 2 and not _has_bias_of_its_own(product)
    )
    return _is_matrix_product(product) and not is_gemm


READS = Int8Style("reads")
PAIRS = Int8Style(
    "pairs",
    followers=ADDING_OPS | CLAMPS | SAME_GRID | _OWN_GRID,
    clamps=CLAMPS,
    rounds_results=True,
    clamps_follow=True,
    gives_float=_has_bias_of_its_own,
    can_give_float=_is_matrix_product,
    adds_constants_in_float=_is_sum_with_stored,
    keeps_small_ends=True,
)
RESULTS = Int8Style("results", leaders=aten_ops("add.Tensor max_pool2d.default"), clamps=RELUS, rounds_results=True)


@dataclass(frozen=True)
class Int8Layout:
    """What is 8-bit in one graph under one plan."""

    eight_bit: frozenset[fx.Node]
    """Ops that compute in 8 bits."""
    values: Mapping[fx.Node, str]
    """Nodes whose value every reader gets rounded -> name of the node whose range its grid has."""
    results: Mapping[fx.Node, fx.Node] = field(default_factory=dict)
    """8-bit ops with an 8-bit result -> the node that gives it: the op itself, or a clamp that its kernel does too."""


def lay_out(
    graph_module: fx.GraphModule,
    planned: Collection[str],
    style: Int8Style,
    *,
    ranges: Mapping[str, ValueRange] | None = None,
    scheme_of: Callable[[str], Scheme] = lambda _: Scheme(),
) -> Int8Layout:
    """Find what a family of runtimes computes in 8 bits, and which values it rounds for all.

    Args:
        graph_module: That of a `FloatGraph`.
        planned: Op ids at int8-static.
        style: The family.
        ranges: Node name -> range; a product that reads a value which never moved stays float, and so does all that
            reads or gives a value without one, which was not finite. None: every value moves.
        scheme_of: Op id -> grids.
    """
    products = [
        node
        for node in graph_module.graph.nodes
        if node.meta.get(OP_ID) in planned and is_product(str(node.target)) and not _is_still(node, ranges or {})
    ]
    if style.keeps_small_ends:
        products = _without_small_ends(graph_module, products)
    eight_bit = set(products)
    for node in graph_module.graph.nodes:
        if node.meta.get(OP_ID) in planned and _goes_on(node, eight_bit, style) and _has_grids(node, ranges):
            eight_bit.add(node)
    results: dict[fx.Node, fx.Node] = {}
    if style.rounds_results:
        giving = [node for node in eight_bit if not _gives_float(node, eight_bit, style)]
        results = {node: _behind_clamp(node, eight_bit, style, scheme_of) for node in giving}
        absorbed = {clamp for node, clamp in results.items() if clamp is not node}
        results = {node: given for node, given in results.items() if node not in absorbed}
    names = {node: _grid_name(node) for node in results.values()}
    if ranges is not None:
        moving = {name for name, one in ranges.items() if one.low < one.high}
        names = {node: name for node, name in names.items() if name in moving}
    return Int8Layout(frozenset(eight_bit), names, results)


def rounding_sums(graph_module: fx.GraphModule, style: Int8Style) -> frozenset[fx.Node]:
    """The additions that round what they read, for themselves, at int8-static.

    Those are sums of results of products, or of such sums: a sum of two values that were computed in float would only
    lose by it, and few targets do it. A style with followers has 8-bit results, so that their inputs are rounded.
    """
    found: set[fx.Node] = set()
    for node in graph_module.graph.nodes:
        if str(node.target) not in ADDING_OPS or style.followers:
            continue
        of_products = _adds_two(node) and all(
            is_product(str(one.target)) or one in found for one in map(_source, _inputs(node))
        )
        if of_products or str(node.target) in style.leaders:
            found.add(node)
    return frozenset(found)


def _adds_two(node: fx.Node) -> bool:
    """Whether both parts of a sum are computed: a number or a stored tensor is a bias, which targets add in float."""
    return all(isinstance(one, fx.Node) and one.op != "get_attr" for one in node.args[:2])


def _source(node: fx.Node) -> fx.Node:
    """The node that computed a value, seen through activations and what only moves values."""
    while str(node.target) in LAYOUT_OPS | _BEHIND_PRODUCTS and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _goes_on(node: fx.Node, eight_bit: Collection[fx.Node], style: Int8Style) -> bool:
    """Whether an op that is no product is done in 8 bits."""
    op = str(node.target)
    sources = [_maker(one) for one in _inputs(node)]
    is_8_bit = [one in eight_bit and not style.gives_float(one) for one in sources]
    follows = op in style.followers and bool(sources) and all(is_8_bit) and not style.adds_constants_in_float(node)
    return follows or op in style.leaders


def _has_grids(node: fx.Node, ranges: Mapping[str, ValueRange] | None) -> bool:
    """Whether calibration knows the range of all floating-point tensors that an op reads and gives."""
    if ranges is None:
        return True
    values = [one for one in (node, *_inputs(node)) if isinstance(one.meta.get("val"), Tensor)]
    return all(one.name in ranges or not one.meta["val"].is_floating_point() for one in values)


def _inputs(node: fx.Node) -> list[fx.Node]:
    """The nodes that it reads, without stored tensors."""
    return [one for one in node.all_input_nodes if one.op != "get_attr"]


def _is_still(node: fx.Node, ranges: Mapping[str, ValueRange]) -> bool:
    found = [ranges[one.name] for one in _inputs(node) if one.name in ranges]
    return any(one.low == one.high for one in found)


def _maker(node: fx.Node) -> fx.Node:
    """The op that made a value, also if it is one of several."""
    while str(node.target) in IDENTITIES or node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node


def _grid_name(node: fx.Node) -> str:
    """The value that has the same grid and was made first."""
    while str(node.target) in SAME_GRID | IDENTITIES or node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node.name


def _gives_float(node: fx.Node, eight_bit: Collection[fx.Node], style: Int8Style) -> bool:
    return style.gives_float(node) or (style.can_give_float(node) and _is_read_in_float(node, eight_bit))


def _is_read_in_float(node: fx.Node, eight_bit: Collection[fx.Node]) -> bool:
    """Whether no 8-bit op reads it."""
    return not any(one in eight_bit for one in readers_of(node, through=IDENTITIES))


def readers_of(node: fx.Node, *, through: Collection[str]) -> list[fx.Node]:
    """Who reads a value, seen through some ops and the parts of a result of several."""
    found, waiting = [], list(node.users)
    while waiting:
        reader = waiting.pop()
        if str(reader.target) in through or reader.target is operator.getitem:
            waiting += reader.users
        else:
            found.append(reader)
    return found


def _behind_clamp(
    node: fx.Node, eight_bit: Collection[fx.Node], style: Int8Style, scheme_of: Callable[[str], Scheme]
) -> fx.Node:
    """The node whose value a kernel gives: that of the op, or of the clamp behind it if the kernel does that too."""
    users = list(node.users)
    if len(users) != 1 or str(users[0].target) not in style.clamps:
        return node
    if not style.clamps_follow:
        return users[0]
    is_affine = scheme_of(users[0].meta.get(OP_ID, "")).activations is ActivationGrid.AFFINE
    return users[0] if users[0] in eight_bit and is_affine else node


def _without_small_ends(graph_module: fx.GraphModule, products: Sequence[fx.Node]) -> list[fx.Node]:
    """Without the convolutions that no product follows and that hold less than `SMALL_SHARE` of the weights."""
    sizes = {}
    for node in products:
        role = op_role(str(node.target))
        stored = constant_of(graph_module, node.args[role.weight]) if role is not None else None
        sizes[node] = 0 if stored is None else stored.numel()
    leading: set[fx.Node] = set()
    for node in reversed(graph_module.graph.nodes):
        if node in sizes or node in leading:
            leading.update(node.all_input_nodes)
    small = SMALL_SHARE * sum(sizes.values())
    return [
        node for node in products if node in leading or sizes[node] >= small or not is_convolution(str(node.target))
    ]
