"""Int8 styles: what a runtime rounds to 8 bits around ops at int8-static.

Every style rounds both factors of a product. Styles differ in what else they round (results, and for which readers)
and in which ops behind a product compute in 8 bits too.

- ``READS``: an 8-bit op rounds what it reads, for itself alone; results stay float. torch's PT2E graphs.
- ``NNCF``: the same, but a small convolution at the end of the model stays float. Models that NNCF made.
- ``PAIRS``: ONNX models with pairs of QuantizeLinear and DequantizeLinear. Every 8-bit op has an 8-bit result, except a
  matrix product that only float ops read, or whose bias is a separate addition. Many ops behind a product are 8-bit.
- ``RESULTS``: rounds inputs as ``READS`` does, and every 8-bit op has an 8-bit result. XNNPACK.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from torch import Tensor, fx

from ace_studio.engine.ops import families
from ace_studio.engine.ops.roles import is_convolution, is_product, op_role
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.records.recipes.plan import ActivationGrid, Scheme

_SAME_VALUES = families.MAX_POOLS | families.aten_ops(
    "view.default reshape.default flatten.using_ints _unsafe_view.default transpose.int permute.default t.default"
    " squeeze.default squeeze.dim squeeze.dims unsqueeze.default chunk.default split.Tensor split_with_sizes.default"
    " upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec"
)
"""Ops besides identities that pass 8-bit values on unchanged. Fewer than `LAYOUT_OPS`: ONNX models have pairs around
these, and none around a slice or a padding."""
SAME_GRID = _SAME_VALUES | families.AVERAGE_POOLS
"""Ops whose result is on the grid of what they read."""
PASSING = families.IDENTITIES | _SAME_VALUES
"""Ops that change no value: rounding their results again has no effect."""
_OWN_GRID = families.LEAKY_RELUS | families.aten_ops("adaptive_avg_pool2d.default cat.default")
_BEHIND_PRODUCTS = (
    families.CLAMPS
    | families.LEAKY_RELUS
    | families.MAX_POOLS
    | families.AVERAGE_POOLS
    | families.aten_ops("adaptive_avg_pool2d.default batch_norm.default")
)
"""Ops behind a product that targets compute in 8 bits together with it."""
SMALL_END_SHARE = 0.1
"""A last convolution with a smaller share of the weights stays float: its 8-bit results would be the model's scores."""


@dataclass(frozen=True)
class Int8Style:
    """What a family of runtimes rounds at int8-static."""

    name: str
    followers: frozenset[str] = frozenset()
    """Ops besides products that compute in 8 bits if all their inputs are 8-bit."""
    gates: frozenset[str] = frozenset()
    """Ops that compute in 8 bits only behind convolutions, if all their inputs are computed and 8-bit."""
    light: frozenset[str] = frozenset()
    """Followers and gates that stay float where only float ops read them."""
    leaders: frozenset[str] = frozenset()
    """Ops besides products that compute in 8 bits wherever they are planned so."""
    clamps: frozenset[str] = frozenset()
    """Ops that are fused into the kernel in front of them, if they are the only reader of its result."""
    rounds_results: bool = False
    """Whether 8-bit ops have 8-bit results."""
    clamps_follow: bool = False
    """Whether only clamps that are planned 8-bit too, on an affine grid, are fused."""
    gives_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether a product's result is always float."""
    can_give_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether a product's result stays float where only float ops read it."""
    adds_constants_in_float: Callable[[fx.Node], bool] = lambda _: False
    """Whether an addition of a product and a stored tensor (a bias, a causal mask) stays float."""
    keeps_small_ends: bool = False
    """Whether a small convolution with no product behind it stays float."""

    @property
    def rounds_reads_only(self) -> bool:
        """Whether results of 8-bit ops stay float, and no ops but products and their sums are 8-bit."""
        return not self.rounds_results and not self.followers


def _is_matrix_product(node: fx.Node) -> bool:
    return is_product(str(node.target)) and not is_convolution(str(node.target))


def _has_bias_of_its_own(node: fx.Node) -> bool:
    """Whether ONNX writes it as a product and an addition: a linear layer with a bias on more than two dimensions."""
    value = node.meta.get("val")
    has_bias = len(node.args) > 2 and node.args[2] is not None
    is_linear = str(node.target) == "aten.linear.default"
    return is_linear and has_bias and isinstance(value, Tensor) and value.dim() != 2


def _is_sum_with_stored(node: fx.Node) -> bool:
    """Whether ONNX writes it as an addition of a ``MatMul`` and a constant."""
    computed = _inputs(node)
    if str(node.target) not in families.ADDING_OPS or _adds_two(node) or len(computed) != 1:
        return False
    product = _maker(computed[0])
    is_gemm = str(product.target) == "aten.addmm.default" or (
        str(product.target) == "aten.linear.default" and len(product.args) > 2 and not _has_bias_of_its_own(product)
    )
    return _is_matrix_product(product) and not is_gemm


_GATES = families.aten_ops("sigmoid.default silu.default silu_.default mul.Tensor")
READS = Int8Style("reads")
NNCF = Int8Style("nncf", keeps_small_ends=True)
PAIRS = Int8Style(
    "pairs",
    followers=families.ADDING_OPS | families.CLAMPS | SAME_GRID | _OWN_GRID,
    gates=_GATES,
    light=families.ADDING_OPS | _GATES | families.aten_ops("cat.default") | (_SAME_VALUES - families.MAX_POOLS),
    clamps=families.CLAMPS,
    rounds_results=True,
    clamps_follow=True,
    gives_float=_has_bias_of_its_own,
    can_give_float=_is_matrix_product,
    adds_constants_in_float=_is_sum_with_stored,
    keeps_small_ends=True,
)
RESULTS = Int8Style(
    "results", leaders=families.aten_ops("add.Tensor max_pool2d.default"), clamps=families.RELUS, rounds_results=True
)


@dataclass(frozen=True)
class Int8Layout:
    """What is 8-bit in one graph under one plan."""

    eight_bit: frozenset[fx.Node]
    """Ops that compute in 8 bits."""
    values: Mapping[fx.Node, str]
    """Nodes whose value is rounded for all readers -> name of the node whose range the grid covers."""
    results: Mapping[fx.Node, fx.Node] = field(default_factory=dict)
    """8-bit ops with an 8-bit result -> the node that gives it: the op itself, or a clamp fused into its kernel."""


def int8_layout(
    graph_module: fx.GraphModule,
    planned: Collection[str],
    style: Int8Style,
    *,
    ranges: Mapping[str, ValueRange] | None = None,
    scheme_of: Callable[[str], Scheme] = lambda _: Scheme(),
) -> Int8Layout:
    """Which ops of a graph compute in 8 bits under a plan, and which values are rounded for all of their readers.

    Args:
        graph_module: That of a `FloatGraph`.
        planned: Op ids at int8-static.
        style: That of the runtime.
        ranges: Node name -> range. A product that reads a constant value (low = high) or one without a range stays
            float, and so does every other op that reads or gives a value without a range. None: all have one.
        scheme_of: Op id -> grids.
    """
    products = [
        node
        for node in graph_module.graph.nodes
        if node.meta.get(OP_ID) in planned
        and is_product(str(node.target))
        and not (ranges is not None and _reads_no_range(node, ranges))
    ]
    eight_bit = set(products) - small_ends(graph_module, style, planned)
    rounded: set[fx.Node] = set()  # those whose results exist in 8 bits only
    for node in graph_module.graph.nodes:
        is_behind = _follows_or_leads(node, eight_bit, style) or _is_gate(node, rounded, style)
        if node.meta.get(OP_ID) in planned and is_behind and _has_grids(node, ranges):
            eight_bit.add(node)
        if node in eight_bit and not style.can_give_float(node):
            rounded |= {node} if is_convolution(str(node.target)) or _has_rounded_inputs(node, rounded) else set()
    for node in reversed(graph_module.graph.nodes):
        if str(node.target) in style.light and node in eight_bit and _leads_to_float(node, eight_bit):
            eight_bit.discard(node)
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


def rounding_sums(
    graph_module: fx.GraphModule, style: Int8Style, planned: Collection[str] | None = None
) -> frozenset[fx.Node]:
    """The additions that round their inputs themselves at int8-static: sums of results of products, and of such sums.

    A sum of two values that were computed in float would only lose precision by it, and few targets do it. In a style
    with followers the inputs of an addition are 8-bit already.

    Args:
        graph_module: That of a `FloatGraph`.
        style: That of the runtime.
        planned: Op ids at int8-static, of the products and of the sums; None: all of them.
    """
    found: set[fx.Node] = set()

    def is_low(node: fx.Node) -> bool:
        return planned is None or node.meta.get(OP_ID) in planned

    for node in graph_module.graph.nodes:
        if str(node.target) not in families.ADDING_OPS or style.followers or not is_low(node):
            continue
        of_products = _adds_two(node) and all(
            (is_product(str(one.target)) and is_low(one)) or one in found for one in map(_source, _inputs(node))
        )
        if of_products or str(node.target) in style.leaders:
            found.add(node)
    return frozenset(found)


def _adds_two(node: fx.Node) -> bool:
    """Whether both inputs are computed: a number or a stored tensor is a bias, which targets add in float."""
    return all(isinstance(one, fx.Node) and one.op != "get_attr" for one in node.args[:2])


def _source(node: fx.Node) -> fx.Node:
    """The node that computed a value, looked for through activations and layout ops."""
    while str(node.target) in families.LAYOUT_OPS | _BEHIND_PRODUCTS and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _follows_or_leads(node: fx.Node, eight_bit: Collection[fx.Node], style: Int8Style) -> bool:
    """Whether an op that is no product computes in 8 bits."""
    op = str(node.target)
    sources = [_maker(one) for one in _inputs(node)]
    is_8_bit = [one in eight_bit and not style.gives_float(one) for one in sources]
    follows = op in style.followers and bool(sources) and all(is_8_bit) and not style.adds_constants_in_float(node)
    return follows or op in style.leaders


def _is_gate(node: fx.Node, rounded: Collection[fx.Node], style: Int8Style) -> bool:
    """Whether an op is a gate whose inputs are all computed and exist in 8 bits only."""
    are_computed = all(isinstance(one, fx.Node) for one in node.args)
    return str(node.target) in style.gates and are_computed and _has_rounded_inputs(node, rounded)


def _has_rounded_inputs(node: fx.Node, rounded: Collection[fx.Node]) -> bool:
    return all(one.op != "get_attr" and _maker(one) in rounded for one in node.all_input_nodes)


def _has_grids(node: fx.Node, ranges: Mapping[str, ValueRange] | None) -> bool:
    """Whether every floating-point tensor that an op reads or gives has a range."""
    if ranges is None:
        return True
    values = [one for one in (node, *_inputs(node)) if isinstance(one.meta.get("val"), Tensor)]
    return all(one.name in ranges or not one.meta["val"].is_floating_point() for one in values)


def _inputs(node: fx.Node) -> list[fx.Node]:
    """The computed inputs: no stored tensors."""
    return [one for one in node.all_input_nodes if one.op != "get_attr"]


def _reads_no_range(node: fx.Node, ranges: Mapping[str, ValueRange]) -> bool:
    found = [ranges.get(one.name) for one in _inputs(node)]
    return any(one is None or one.low == one.high for one in found)


def _maker(node: fx.Node) -> fx.Node:
    """The op that made a value, looked for through identities and ``getitem``."""
    while str(node.target) in families.IDENTITIES or node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node


def _grid_name(node: fx.Node) -> str:
    """Name of the first node whose value has the same grid."""
    while str(node.target) in SAME_GRID | families.IDENTITIES or node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node.name


def _gives_float(node: fx.Node, eight_bit: Collection[fx.Node], style: Int8Style) -> bool:
    return style.gives_float(node) or (style.can_give_float(node) and _is_read_in_float(node, eight_bit))


def _is_read_in_float(node: fx.Node, eight_bit: Collection[fx.Node]) -> bool:
    """Whether no 8-bit op reads it."""
    return not any(one in eight_bit for one in readers_of(node, through=families.IDENTITIES))


def _leads_to_float(node: fx.Node, eight_bit: Collection[fx.Node]) -> bool:
    """Whether ops read it, and all of them are float."""
    readers = readers_of(node, through=families.IDENTITIES)
    return any(one.op != "output" for one in readers) and not any(one in eight_bit for one in readers)


def readers_of(node: fx.Node, *, through: Collection[str]) -> list[fx.Node]:
    """The readers of a value, looked for through the ops named and ``getitem``."""
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
    """The node whose value the op's kernel gives: the op itself, or a clamp behind it that is fused."""
    users = list(node.users)
    if len(users) != 1 or str(users[0].target) not in style.clamps:
        return node
    if not style.clamps_follow:
        return users[0]
    is_affine = scheme_of(users[0].meta.get(OP_ID, "")).activations is ActivationGrid.AFFINE
    return users[0] if users[0] in eight_bit and is_affine else node


def small_ends(graph_module: fx.GraphModule, style: Int8Style, planned: Collection[str]) -> frozenset[fx.Node]:
    """The convolutions planned int8-static that stay float: those with no product behind them and little weight.

    Args:
        graph_module: That of a `FloatGraph`.
        style: That of the runtime.
        planned: Op ids at int8-static. A convolution is small with less than `SMALL_END_SHARE` of their weights.
    """
    if not style.keeps_small_ends:
        return frozenset()
    sizes: dict[fx.Node, int] = {}
    for node in graph_module.graph.nodes:
        if node.meta.get(OP_ID) in planned and is_product(str(node.target)):
            role = op_role(str(node.target))
            stored = constant_of(graph_module, node.args[role.weight]) if role is not None else None
            sizes[node] = 0 if stored is None else stored.numel()
    leading: set[fx.Node] = set()  # to a product, planned or not
    for node in reversed(graph_module.graph.nodes):
        if is_product(str(node.target)) or node in leading:
            leading.update(node.all_input_nodes)
    small = SMALL_END_SHARE * sum(sizes.values())
    return frozenset(
        node for node in sizes if node not in leading and sizes[node] < small and is_convolution(str(node.target))
    )
