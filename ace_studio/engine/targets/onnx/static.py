"""Chooses the ONNX nodes that become 8-bit for ops planned int8-static, and observes the ranges of their values."""

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ace_studio.engine.flow import Example
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.observers import UNSEEN, RangeChoice, ValueObservers, ValueRange
from ace_studio.engine.quantize.simulate.int8_style import SMALL_END_SHARE
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.shared.flat_call import as_numpy
from ace_studio.records.recipes.plan import ActivationGrid, Precision

CONVOLUTION_TYPES = frozenset({"Conv", "ConvTranspose"})
PRODUCT_TYPES = CONVOLUTION_TYPES | {"Gemm", "MatMul"}
MOVING_TYPES = frozenset(
    {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Split", "Slice", "Gather", "Pad", "Concat", "Identity"}
)
"""Node types that move values without changing them."""
FOLLOWING_TYPES = frozenset(
    {"Add", "Relu", "Clip", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Reshape",
     "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Split", "Resize"}
)  # fmt: skip
"""Node types that run in 8 bits if all of their inputs are 8-bit already; a ``Resize`` only if it repeats values."""
GATE_TYPES = frozenset({"Mul", "Sigmoid"})
"""Node types that run in 8 bits only behind convolutions, whose results are 8-bit anyway; other products give float."""
_LIGHT_TYPES = MOVING_TYPES | GATE_TYPES | {"Add"}
"""Followers that are hardly slower in float. An activation is none: the grid of a convolution takes its place."""
_RANGES_KEY = "onnx_activation_ranges"

Ranges = Mapping[str, tuple[float, float]]
"""Value name -> smallest and largest element seen."""


@dataclass(frozen=True)
class StaticChoice:
    """The nodes to quantize and the ranges of the values around them."""

    nodes: frozenset[str]
    ranges: Ranges
    notes: Mapping[str, str]
    """Op id -> why a node of it stays float although it is planned int8-static."""
    symmetric: frozenset[str] = frozenset()
    """Names of the values whose grid lies around 0."""
    is_finite: bool = True
    """Whether the values around the nodes were finite throughout calibration."""


_MASK = "it holds values that are not finite (a mask), which no grid has"
_INTEGERS = "its result is whole numbers or truth values, which are not rounded"


def choose_static(
    program: OnnxProgram,
    job: LoweringJob,
    examples: Sequence[Example],
    *,
    make_session: Callable[[Any], Any],
    kept: Mapping[str, str] | None = None,
) -> StaticChoice:
    """Pick the nodes to quantize among those of the ops planned int8-static.

    A product is chosen if its inputs varied during calibration: a recurrent state that was always zero has no known
    range, and a grid of that range would turn every later state into zero. A node behind a product is chosen if all of
    its inputs are 8-bit; rounding the inputs of a float sum would only cost accuracy. None is chosen around a value
    without a range. ``kept`` says of other products why they stay float.
    """
    planned = set(program.nodes_of(job.plan.ops_at(Precision.INT8_STATIC)))
    products = [node for node in program.model.graph.node if node.name in planned and node.op_type in PRODUCT_TYPES]
    seen = _shared_ranges(program, job, examples, make_session)
    ranges = _bounds(seen.seen())
    constants = {tensor.name for tensor in program.model.graph.initializer}
    notes: dict[str, str] = {}
    for node in [node for node in products if _constant_inputs(node, ranges)]:
        owner, value = program.owners[node.name][0], _constant_inputs(node, ranges)[0]
        notes[owner] = f"one of its inputs was {value:g} throughout calibration, so its range is not known"
    if notes:
        first, *others = notes
        words = f"{first} stays (partly) fp32: {notes[first]}"
        shown = ", ".join(others[:3]) + (" ..." if len(others) > 3 else "")
        more = f". So do {len(others)} more ops with such an input ({shown})" if others else ""
        job.reporter.warn("calibration-constant", words + more, where=first)
    for node in program.model.graph.node:
        if node.name in planned and (why := _why_no_range(node, seen, known={*constants, *ranges})):
            notes.setdefault(program.owners[node.name][0], why)
            planned.discard(node.name)
    products = [node for node in products if node.name in planned and not _constant_inputs(node, ranges)]
    reason = "it is the last convolution and small: 8 bits save little there, and every score shows them"
    floats = {**dict.fromkeys(_small_last_convolutions(program, products), reason), **(kept or {})}
    notes |= {program.owners[node.name][0]: floats[node.name] for node in products if node.name in floats}
    products = [node for node in products if node.name not in floats]
    chosen = with_followers(program.model, planned, {node.name for node in products}, constants)
    rows = zip(job.captured.table.op_id, job.captured.table.dtype, strict=True)
    integers = {op_id for op_id, dtype in rows if dtype.startswith(("bool", "int", "uint"))}
    for node in program.model.graph.node:
        if node.name in planned - chosen:
            owner = program.owners[node.name][0]
            notes.setdefault(owner, _INTEGERS if owner in integers else _float_reason(node))
    symmetric = _symmetric_values(program, job, chosen)
    grids = dict.fromkeys(symmetric, ActivationGrid.SYMMETRIC)
    found = _bounds(seen.ranges(lambda name: grids.get(name, ActivationGrid.AFFINE)))
    around = {name for node in program.model.graph.node if node.name in chosen for name in (*node.input, *node.output)}
    return StaticChoice(
        frozenset(chosen), found, notes, symmetric=symmetric & set(found), is_finite=seen.broken.isdisjoint(around)
    )


def _bounds(found: Mapping[str, ValueRange]) -> dict[str, tuple[float, float]]:
    return {name: (one.low, one.high) for name, one in found.items()}


def _why_no_range(node: Any, seen: ValueObservers, *, known: Collection[str]) -> str:
    """Why a value around the node has no range; empty if all have one, or need none."""
    missing = [name for name in (*node.input[:2], *node.output) if name and name not in known]
    if any(name in seen.shown for name in missing):
        return _MASK if seen.masks.intersection(missing) else UNSEEN
    is_other = missing and node.op_type in PRODUCT_TYPES
    return "its values are of a type for which there are no 8-bit grids here" if is_other else ""


def _float_reason(node: Any) -> str:
    if _interpolates(node):
        return "it computes values between those that it reads, which 8 bits would round"
    if node.op_type in PRODUCT_TYPES | FOLLOWING_TYPES | GATE_TYPES | MOVING_TYPES:
        return "what it reads is float"
    return f"{node.op_type}, which it is in ONNX, has no 8-bit kernel worth using"


def _interpolates(node: Any) -> bool:
    modes = [entry.s for entry in node.attribute if entry.name == "mode"]
    return node.op_type == "Resize" and modes not in ([], [b"nearest"])


def _constant_inputs(node: Any, ranges: Ranges) -> list[float]:
    """The value of each factor that was constant during calibration."""
    bounds = [ranges[name] for name in node.input[:2] if name in ranges]
    return [low for low, high in bounds if low == high]


def _small_last_convolutions(program: OnnxProgram, products: Sequence[Any]) -> list[str]:
    """Convolutions that no product follows, with less than `SMALL_END_SHARE` of the weights that are planned 8-bit.

    An 8-bit convolution has an 8-bit result (a ``Gemm`` need not), so that many scores become equal: the last, tiny
    convolution alone lowered the AUC of a voice detector from .991 to .978.
    """
    sizes = {tensor.name: int(np.prod(tensor.dims)) for tensor in program.model.graph.initializer}
    weights = {node.name: sum(sizes.get(name, 0) for name in node.input[1:2]) for node in products}
    total = sum(weights.values())
    leading = _nodes_leading_to_products(program)
    return [
        node.name
        for node in products
        if node.op_type in CONVOLUTION_TYPES
        and node.name not in leading
        and weights[node.name] < SMALL_END_SHARE * total
    ]


def _nodes_leading_to_products(program: OnnxProgram) -> set[str]:
    """Names of the nodes from which a product is reached, at whatever precision it is."""
    wanted: set[str] = set()
    leading: set[str] = set()
    for node in reversed(program.model.graph.node):
        if wanted.intersection(node.output):
            leading.add(node.name)
        if node.op_type in PRODUCT_TYPES or node.name in leading:
            wanted.update(node.input)
    return leading


def with_followers(
    model: Any, planned: Collection[str], chosen: Collection[str], constants: Collection[str]
) -> set[str]:
    """The chosen nodes, and the planned nodes all of whose inputs, constants aside, come from such nodes.

    Sums and moves that only float nodes read are left out: their rounding would cost accuracy and save nothing, as in
    the residual stream of a transformer behind its first convolution.
    """
    made: set[str] = set()
    rounded: set[str] = set()  # values that exist in 8 bits only
    result = set(chosen)
    for node in model.graph.node:
        inputs = {name for name in node.input if name and name not in constants}
        is_gate = node.op_type in GATE_TYPES and rounded.issuperset(node.input)
        is_behind = node.op_type in FOLLOWING_TYPES and made.issuperset(inputs) and not _interpolates(node)
        follows = node.name in planned and bool(inputs) and (is_gate or is_behind)
        if follows:
            result.add(node.name)
        if follows or node.name in chosen:
            made.update(node.output)
        if (node.op_type in CONVOLUTION_TYPES and node.name in chosen) or (follows and rounded.issuperset(inputs)):
            rounded.update(node.output)
    readers: dict[str, set[str]] = {}
    for node in reversed(model.graph.node):
        around = set().union(*(readers.get(name, set()) for name in node.output))
        if node.op_type in _LIGHT_TYPES and node.name not in chosen and around and not around & result:
            result.discard(node.name)
        for name in node.input:
            readers.setdefault(name, set()).add(node.name)
    return result


def _symmetric_values(program: OnnxProgram, job: LoweringJob, chosen: Collection[str]) -> frozenset[str]:
    """Inputs of the nodes with symmetric activations, and their results unless another chosen node reads them."""

    def is_symmetric(node: Any) -> bool:
        owners = program.owners.get(node.name, ())
        return any(job.plan.scheme_of(owner).activations is ActivationGrid.SYMMETRIC for owner in owners)

    nodes = [node for node in program.model.graph.node if node.name in chosen]
    read = {name for node in nodes for name in node.input}
    found = {name for node in nodes if is_symmetric(node) for name in node.input}
    found |= {name for node in nodes if is_symmetric(node) for name in node.output if name not in read}
    return frozenset(found)


def _shared_ranges(
    program: OnnxProgram, job: LoweringJob, examples: Sequence[Example], make_session: Callable[[Any], Any]
) -> ValueObservers:
    """The observed values, computed once per job and model: a job has one set of calibration examples."""
    known: list[tuple[OnnxProgram, ValueObservers]] = job.shared.setdefault(_RANGES_KEY, [])
    for one, seen in known:
        if one is program:
            return seen
    known.append((program, observe_values(program, examples, make_session, reporter=job.reporter, choice=job.ranges)))
    return known[-1][1]


def observe_values(
    program: OnnxProgram,
    examples: Sequence[Example],
    make_session: Callable[[Any], Any],
    *,
    reporter: Reporter,
    choice: RangeChoice,
) -> ValueObservers:
    """Observe every float value around products and the nodes behind them over all examples."""
    model = copy.deepcopy(program.model)
    watched = watched_values(model)
    present = {output.name for output in model.graph.output}
    present |= {entry.name for entry in model.graph.input}
    model.graph.output.extend(info for name, info in watched.items() if name not in present)
    session = make_session(model)
    observers = ValueObservers(choice)
    products = [node for node in model.graph.node if node.op_type in PRODUCT_TYPES]
    of_products = {name for node in products for name in (*node.input, *node.output)}
    for index, example in enumerate(examples):
        reporter.advance(index / len(examples), f"finding ranges, example {index + 1} of {len(examples)}")
        feed = {name: as_numpy(leaf) for name, leaf in zip(program.input_names, example.tensors(), strict=True)}
        for name, value in zip(watched, _all_values(session, watched, feed), strict=True):
            observers.see(name, torch.from_numpy(np.ascontiguousarray(value)), is_of_product=name in of_products)
    return observers


def _all_values(session: Any, watched: Mapping[str, Any], feed: dict[str, Any]) -> list[Any]:
    """Values of the watched names; those that are inputs of the model are taken from the feed."""
    asked = [name for name in watched if name not in feed]
    found = dict(zip(asked, session.run(asked, feed), strict=True)) if asked else {}
    return [feed[name] if name in feed else found[name] for name in watched]


def watched_values(model: Any) -> dict[str, Any]:
    """Name -> description of every float value around products and the nodes behind them."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph
    infos = {info.name: info for info in [*inferred.value_info, *model.graph.input, *model.graph.output]}
    names = {
        name
        for node in model.graph.node
        if node.op_type in PRODUCT_TYPES | FOLLOWING_TYPES | GATE_TYPES
        for name in [*node.input, *node.output]
    }
    wanted = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    known = [name for name in sorted(names) if name in infos]
    return {name: infos[name] for name in known if infos[name].type.tensor_type.elem_type in wanted}
