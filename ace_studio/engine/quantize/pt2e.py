"""int8 in the captured graph, static and dynamic, by torchao's PT2E flow, with a quantizer that works by op id.

torchao's own x86 quantizer looks for patterns of modules, which a non-strict capture does not have (on a ResNet50 it
says "more than one output node"), and changes Inductor's global settings when it is imported. Ours annotates exactly
the ops that the plan names: the input of each gets a grid per tensor, its weight one per output channel.
"""

import importlib
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.ops.families import ADDING_OPS, aten_ops
from ace_studio.engine.ops.roles import is_convolution
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.flat_graph import OP_ID, add_constant, call_before, constant_of, tidy
from ace_studio.engine.quantize.observers import UNSEEN, RangeChoice, write_out_range_searches
from ace_studio.engine.quantize.pt2e_specs import activation_specs, fresh_spec, weight_specs
from ace_studio.engine.quiet import hushed
from ace_studio.engine.replaced import replaced_attribute
from ace_studio.engine.torch_private.sizes import size_text
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import ActivationGrid, Scheme

STATIC_INT8_OPS = aten_ops("conv1d.default conv2d.default linear.default")
"""Ops with stored weights that both Inductor and XNNPACK have int8 kernels for."""
PASSING_OPS = aten_ops("max_pool2d.default")
"""Ops that pass int8 values on unchanged, on the grid of their input."""
DYNAMIC_INT8_OPS = aten_ops("linear.default")
"""Ops whose activations can get a grid at every call."""
_WIDE_CHANNELS = 2
_CONV1D_DEFAULTS = (None, None, None, [1], [0], [1], 1)
ANNOTATION = "quantization_annotation"
"""Where torchao looks for the annotation in a node's ``meta``."""
INSTALL_LINE = "pip install 'torchao>=0.14,<0.20'"


def static_problem(op: str) -> str:
    """Empty if the operator can be static int8 in a torch graph, else why not."""
    if op in STATIC_INT8_OPS | PASSING_OPS | ADDING_OPS:
        return ""
    return f"torch has no int8 kernel for {op} here; it computes in float between quantized ops"


def dynamic_problem(op: str) -> str:
    """Empty if the operator can be dynamic int8 in a torch graph, else why not."""
    return "" if op in DYNAMIC_INT8_OPS else f"only linear ops can be int8-dynamic in torch, {op} stays in float"


def is_torchao_installed() -> bool:
    """Whether torchao is installed; nothing is imported."""
    return importlib.util.find_spec("torchao") is not None


def quantize_int8(
    graph_module: fx.GraphModule,
    *,
    static: Collection[str] = (),
    dynamic: Collection[str] = (),
    calibration: Sequence[Sequence[Tensor]],
    reporter: Reporter,
    schemes: Callable[[str], Scheme] = lambda _: Scheme(),
    ranges: RangeChoice | None = None,
) -> tuple[fx.GraphModule, dict[str, str]]:
    """The graph with int8 weights and int8 inputs of the planned ops.

    Weights are symmetric, activations uint8 with one grid per tensor. Static grids cover the calibration examples;
    dynamic ones are found at every call, and are always affine.

    Args:
        graph_module: A `flat_graph`; it is changed.
        static: Op ids at int8-static.
        dynamic: Op ids at int8-dynamic; only linear ops can be.
        calibration: Flat tensor inputs of each example, at least one; static ranges are found on them.
        reporter: Gets the progress.
        schemes: Op id -> grids.
        ranges: How static ranges follow from the values; None: from the smallest to the largest.

    Returns: The quantized graph, and op id -> why it was left in float.
    Raises: AceError(NOT_INSTALLED) without torchao.
    """
    if not is_torchao_installed():
        raise AceError.of(
            ErrorCode.NOT_INSTALLED, "int8 in a torch graph needs torchao, which is not installed", remedy=INSTALL_LINE
        )
    nodes, refused = _choose(graph_module, {*static, *dynamic})
    for node in [node for node in nodes if node.meta[OP_ID] in dynamic and str(node.target) not in DYNAMIC_INT8_OPS]:
        refused[node.meta[OP_ID]] = dynamic_problem(str(node.target))
        nodes.remove(node)
    if not nodes:
        return graph_module, refused
    nodes = [_as_two_dimensional(graph_module, node) for node in nodes]
    lay_out_inputs(nodes)
    graph_module.recompile()
    for node in nodes:
        _widen_single_channel(graph_module, node)
    with hushed():
        dynamic_names = {node.name for node in nodes if node.meta[OP_ID] in dynamic}
        grids = {node.name: schemes(node.meta[OP_ID]) for node in nodes}
        annotate = _annotator(nodes, dynamic_names, schemes=grids, ranges=ranges or RangeChoice())
        converted, unseen = converted_by_torchao(graph_module, annotate, calibration, reporter)
    refused |= dict.fromkeys(unseen & set(static), UNSEEN)
    for node in nodes:
        op_id = node.meta[OP_ID]
        if op_id in dynamic and schemes(op_id).activations is ActivationGrid.SYMMETRIC:
            refused[op_id] = "torch finds dynamic grids with a zero point, so this one is affine"
    write_out_range_searches(converted)
    tidy(converted)
    return converted, refused


def _choose(graph_module: fx.GraphModule, planned: Collection[str]) -> tuple[list[fx.Node], dict[str, str]]:
    """The nodes to annotate, in order, and op id -> why another planned op is left out."""
    chosen: list[fx.Node] = []
    refused: dict[str, str] = {}
    for node in graph_module.graph.nodes:
        op_id = node.meta.get(OP_ID, "")
        if op_id not in planned:
            continue
        problem = _node_problem(graph_module, node)
        if problem:
            refused[op_id] = problem
        else:
            chosen.append(node)
    chosen = _without_lone_additions(chosen, refused)
    useful = _without_idle_passing(chosen)
    for node in chosen:
        if node not in useful:
            refused[node.meta[OP_ID]] = "nothing after it computes in int8, so it stays in float"
    return [node for node in chosen if node in useful], refused


def _without_lone_additions(chosen: Sequence[fx.Node], refused: dict[str, str]) -> list[fx.Node]:
    """The nodes but for additions that no int8 convolution can do; the reasons go into ``refused``."""
    kept = []
    for node in chosen:
        if str(node.target) in ADDING_OPS and added_value(node, chosen) is None:
            refused[node.meta[OP_ID]] = "no int8 convolution in front of it can add in place, so it stays in float"
        else:
            kept.append(node)
    return kept


def _node_problem(graph_module: fx.GraphModule, node: fx.Node) -> str:
    problem = static_problem(str(node.target))
    if problem or str(node.target) in PASSING_OPS | ADDING_OPS:
        return problem
    if constant_of(graph_module, node.args[1]) is None:
        return "its weight is computed, not stored"
    value = node.args[0].meta.get("val") if isinstance(node.args[0], fx.Node) else None
    if not isinstance(value, Tensor) or value.dtype is not torch.float32:
        return "its input is not float32"
    return ""


def _without_idle_passing(chosen: Sequence[fx.Node]) -> set[fx.Node]:
    """The nodes but for ops that only pass values on and have no int8 op among their readers."""
    useful: set[fx.Node] = set()
    for node in reversed(chosen):
        if str(node.target) not in PASSING_OPS or any(reader in useful for reader in node.users):
            useful.add(node)
    return useful


def _as_two_dimensional(graph_module: fx.GraphModule, node: fx.Node) -> fx.Node:
    """Write a 1-d convolution as a 2-d one of height 1, with a ReLU behind it; other nodes are returned as they are.

    Inductor (torch 2.11 to 2.13) infers a wrong shape for an int8 1-d convolution, and what follows does not compile.
    """
    if node.target is not torch.ops.aten.conv1d.default:
        return node
    weight = constant_of(graph_module, node.args[1])
    assert weight is not None  # `_node_problem` checked it
    arguments: list[Any] = [*node.args, *_CONV1D_DEFAULTS[len(node.args) :]]
    x, _, bias, stride, padding, dilation, groups = arguments
    name = f"{node.args[1].target}_2d"  # type: ignore[union-attr]
    wide = add_constant(graph_module, name, weight.unsqueeze(2), before=node)
    flat = call_before(node, torch.ops.aten.unsqueeze.default, x, 2)
    strides = [[1, *stride], [0, *padding], [1, *dilation]]
    result = call_before(node, torch.ops.aten.conv2d.default, flat, wide, bias, *strides, groups)
    result.meta[OP_ID] = node.meta[OP_ID]
    users = list(node.users)
    if len(users) == 1 and users[0].target is torch.ops.aten.relu.default:
        relu = call_before(users[0], torch.ops.aten.relu.default, result)
        relu.meta[OP_ID] = users[0].meta[OP_ID]
        users[0].replace_all_uses_with(call_before(users[0], torch.ops.aten.squeeze.dim, relu, 2))
        graph_module.graph.erase_node(users[0])
    else:
        node.replace_all_uses_with(call_before(node, torch.ops.aten.squeeze.dim, result, 2))
    graph_module.graph.erase_node(node)
    return result


def _widen_single_channel(graph_module: fx.GraphModule, node: fx.Node) -> None:
    """Repeat the one channel of a convolution's input and give the copies zero weights: the same function.

    At a dynamic batch Inductor (torch 2.11 to 2.13) gets the memory layout of an int8 convolution's result wrong if
    its input has a single channel, and the generated code stops at its own assertion. oneDNN pads the channels
    in any case, so this costs little; two is the smallest number that works.
    """
    x = node.args[0]
    weight = constant_of(graph_module, node.args[1]) if len(node.args) > 1 else None
    if not isinstance(x, fx.Node) or weight is None or not is_convolution(str(node.target)):
        return
    value = x.meta["val"]
    if weight.shape[1] != 1 or value.shape[1] != 1 or all(isinstance(size, int) for size in value.shape):
        return
    spatial = weight.dim() - 2
    padding = [0, 0] * spatial + [0, _WIDE_CHANNELS - 1]
    wide = torch.nn.functional.pad(weight, padding)
    sizes = [-1, _WIDE_CHANNELS, *[-1] * spatial]
    repeated = call_before(node, torch.ops.aten.expand.default, x, sizes)
    name = f"{node.args[1].target}_wide"  # type: ignore[union-attr]
    node.args = (repeated, add_constant(graph_module, name, wide, before=node), *node.args[2:])


def _annotator(
    nodes: Sequence[fx.Node], dynamic_names: Collection[str], *, schemes: Mapping[str, Scheme], ranges: RangeChoice
) -> Callable[[fx.Node], None]:
    """What writes the plan as torchao's annotations of these nodes."""
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, SharedQuantizationSpec  # noqa: PLC0415

    static, fresh, weights = activation_specs(ranges, is_signed=False), fresh_spec(is_signed=False), weight_specs()
    wanted = {node.name for node in nodes}
    added = {node.name: added_value(node, nodes) for node in nodes if str(node.target) in ADDING_OPS}
    names = {name: value.name for name, value in added.items() if value is not None}

    def annotation(node: fx.Node) -> Any:
        scheme = schemes[node.name]
        activation = static[scheme.activations]
        if str(node.target) in PASSING_OPS:
            same = SharedQuantizationSpec((node.args[0], node))
            return QuantizationAnnotation({node.args[0]: activation}, output_qspec=same, _annotated=True)
        if str(node.target) in ADDING_OPS:
            inputs = [one for one in node.all_input_nodes if one.name == names.get(node.name)]
            return QuantizationAnnotation(dict.fromkeys(inputs, activation), _annotated=True)
        given = fresh if node.name in dynamic_names else activation
        pair = {node.args[0]: given, node.args[1]: weights[scheme.weights]}
        return QuantizationAnnotation(pair, _annotated=True)

    def annotate(node: fx.Node) -> None:
        if node.name in wanted:
            node.meta[ANNOTATION] = annotation(node)

    return annotate


def converted_by_torchao(
    graph_module: fx.GraphModule,
    annotate: Callable[[fx.Node], None],
    examples: Sequence[Sequence[Tensor]],
    reporter: Reporter,
) -> tuple[fx.GraphModule, set[str]]:
    """The graph quantized by torchao's PT2E flow, and the ids of ops that stay float because no range was seen.

    What torchao puts around an op has no op id.

    Args:
        graph_module: A `flat_graph`; it is changed.
        annotate: Called with every node; writes `ANNOTATION` into the ``meta`` of those that are to be quantized.
        examples: Flat tensor inputs of each example, at least one; static ranges are found on them.
        reporter: Gets the progress.
    """
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e  # noqa: PLC0415 - slow
    from torchao.quantization.pt2e.quantizer import Quantizer  # noqa: PLC0415 - slow

    class PlanQuantizer(Quantizer):  # type: ignore[misc]  # torchao is not typed
        """Writes the plan as annotations."""

        def annotate(self, model: fx.GraphModule) -> fx.GraphModule:
            """Annotate the graph that torchao prepared."""
            for node in model.graph.nodes:
                annotate(node)
            return model

        def validate(self, model: fx.GraphModule) -> None:
            """Nothing to check: the nodes were chosen by what they are."""

    # torchao folds every batch norm itself, wrongly: it fails on one without gain (`affine=False`), and changes a layer
    # whose result others read too. `fold_batch_norms` has done it where it can be done. For one that is left, torchao
    # then compares the graph with patterns of quantization-aware training, which takes 40 s and finds nothing here.
    with ExitStack() as stack:
        torchao = importlib.import_module(prepare_pt2e.__module__)
        for name in ("_fuse_conv_bn_", "_fuse_linear_bn_", "_fold_conv_bn_qat"):
            stack.enter_context(replaced_attribute(torchao, name, lambda model: model))
        observed = prepare_pt2e(graph_module, PlanQuantizer())
        for index, example in enumerate(examples):
            reporter.advance(index / len(examples), f"example {index + 1} of {len(examples)}")
            observed(*[leaf.clone() for leaf in example])  # the graph may write into its inputs
        unseen = _drop_unseen(observed)
        reporter.advance(None, "ranges of the values")
        converted: fx.GraphModule = convert_pt2e(observed)
    for node in converted.graph.nodes:
        if "quantize" in str(node.target):
            node.meta.pop(OP_ID, None)  # torchao copies the op's meta to what it puts around it
    return converted, unseen


def _drop_unseen(observed: fx.GraphModule) -> set[str]:
    """Take out, in place, the observers that saw nothing and those of the weights beside them; ids of their ops."""
    found: set[str] = set()
    observers = {node: observed.get_submodule(node.target) for node in observed.graph.nodes if node.op == "call_module"}
    for node in [node for node, observer in observers.items() if getattr(observer, "saw_nothing", False)]:
        for reader in list(node.users):
            found.add(reader.meta.get(OP_ID, ""))
            for other in [one for one in reader.all_input_nodes if one in observers]:
                reader.replace_input_with(other, other.args[0])
    observed.graph.eliminate_dead_code()
    return found


_CONVOLUTION = "aten.conv2d.default"


def added_value(node: fx.Node, chosen: Collection[fx.Node]) -> fx.Node | None:
    """The value that an addition adds to the result of an int8 convolution, None if the kernel cannot do it.

    The kernel adds in place, into the memory of that value, which must have a grid and no reader left. So the value
    must be quantized for convolutions that run earlier anyway, or come from an int8 convolution.

    Args:
        node: One of `ADDING_OPS`.
        chosen: The ops that get int8 inputs.
    """
    inputs = [one for one in node.args if isinstance(one, fx.Node)]
    if len(inputs) != 2 or inputs[0] is inputs[1] or node.kwargs.get("alpha", 1) != 1 or not _are_alike(*inputs):
        return None
    for convolution, other in (inputs, inputs[::-1]):
        if _is_convolution(convolution, chosen) and len(convolution.users) == 1:
            before = _ancestors(convolution)
            readers = [user for user in other.users if user is not node and user in chosen]
            if all(reader in before for reader in readers) and (readers or _is_convolution(other, chosen)):
                return other
    return None


def _is_convolution(node: fx.Node, chosen: Collection[fx.Node]) -> bool:
    return node in chosen and str(node.target) == _CONVOLUTION


def _are_alike(one: fx.Node, other: fx.Node) -> bool:
    """Whether both are tensors of the same type and, for every size of their symbols, the same shape."""
    first, second = one.meta.get("val"), other.meta.get("val")
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)) or first.dtype is not second.dtype:
        return False
    return [size_text(size) for size in first.shape] == [size_text(size) for size in second.shape]


def _ancestors(node: fx.Node) -> set[fx.Node]:
    """The node and all that it is computed from."""
    found, waiting = {node}, [node]
    while waiting:
        fresh = [one for one in waiting.pop().all_input_nodes if one not in found]
        found.update(fresh)
        waiting += fresh
    return found


def lay_out_inputs(nodes: Sequence[fx.Node]) -> int:
    """Make the inputs of linear ops contiguous where they are views in another order (a transpose), in place.

    Inductor writes a linear op of such an input as a batched product, and at dynamic sizes its search for int8 forms
    of that raises TypeError (torch 2.11 to 2.13), or leaves the op in float. The copy is made while the values are
    quantized; the compiler removes it where it changes nothing.

    Args:
        nodes: The ops that are to be quantized; others than linear ones are left alone.

    Returns: How many values are copied. Ops that read the same one share its copy.
    """
    copies: dict[fx.Node, fx.Node] = {}
    linears = [node for node in nodes if node.target is torch.ops.aten.linear.default]
    # At run time inputs are contiguous: if the traced ones were not, the traced strides are wrong.
    is_known = bool(linears) and _has_inputs_in_order(linears[0].graph)
    for node in linears:
        x = node.args[0]
        if not isinstance(x, fx.Node) or x.meta["val"].dim() < 3 or (is_known and _is_in_order(x.meta["val"])):
            continue
        if x not in copies:
            with node.graph.inserting_before(node):
                copies[x] = node.graph.call_function(torch.ops.aten.contiguous.default, (x,))
            copies[x].meta["val"] = x.meta["val"].new_empty(x.meta["val"].shape)
        node.args = (copies[x], *node.args[1:])
    return len(copies)


def _has_inputs_in_order(graph: fx.Graph) -> bool:
    values = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    return all(_is_in_order(value) for value in values if isinstance(value, Tensor))


def _is_in_order(value: Tensor) -> bool:
    """Whether the strides are those of a contiguous tensor. Compared as text: comparing would specialize free sizes."""
    wanted = value.new_empty(value.shape).stride()
    return [size_text(one) for one in value.stride()] == [size_text(one) for one in wanted]
