"""What one op gives for one example, in float and under the plan; the model stays loaded for the next question."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from ace_studio.engine.flow import AnyCapture, BoundPlan, CapturedModel, DataSources
from ace_studio.engine.pipeline.compress.calibration import read_calibration
from ace_studio.engine.pipeline.compress.improving import any_target, ranges_of
from ace_studio.engine.pipeline.sensitivity import targets_of
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import OP_ID, constant_of
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.simulate import FloatGraph, Int8Style, Simulator, float_graph
from ace_studio.engine.quantize.simulate.runs import Kept
from ace_studio.engine.quantize.summary import compare_tensors
from ace_studio.engine.targets import select_targets
from ace_studio.engine.targets.shared.int8_styles import most_rounding
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.messages import Phase, ValuesRequest
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import PruneMethod, Recipe
from ace_studio.records.values import OpValues, TensorValues

_MOST_RESULTS = 4
"""Tensors of one result that are shown."""
_SIMULATED = "Compressed values come from a simulation of the plan; the kernels of a built model differ a little"
_SUBGRAPH = "The inputs are those that Python gave to this part of the model when it was captured"
_NOT_IMPROVED = "Improved weights are left out of the simulation"
_NOT_PRUNED = "These are values of the model before it is pruned"

Found = tuple[str, Tensor, Tensor | None, int | None]
"""Name, float value, compressed value, axis of a weight's output channels."""


@dataclass
class Watched:
    """A captured model that questions are asked about. What the first one needed is kept for the others."""

    captured: AnyCapture
    data: DataSources
    _graphs: dict[int, FloatGraph] = field(default_factory=dict)
    _ranges: dict[object, dict[str, ValueRange]] = field(default_factory=dict)
    _simulators: dict[object, Simulator] = field(default_factory=dict)
    _kept: tuple[object, Kept] = (None, {})
    """Values of the last example under the last plan."""

    def values(self, request: ValuesRequest, reporter: Reporter) -> OpValues:
        """The answer to one question.

        Raises: AceError(UNSUPPORTED) if the ops cannot be run one by one; AceError(NOT_FOUND) if nothing computes this
            op any more, or the file cannot be written.
        """
        reporter.phase(Phase.VALUES, request.op_id)
        place, local = self._find(request.op_id)
        if place not in self._graphs:
            self._graphs[place] = float_graph(self.captured.graphs()[place].captured)
        graph = self._graphs[place]
        home = graph.folded.get(local, local)
        nodes = _nodes_of(graph, home) or _nodes_of(graph, local)
        if not nodes:
            raise _unknown(request.op_id, "the simulation leaves it out, because nothing reads it")
        captured, name = self.captured.graphs()[place]
        plan = self._plan(request, name, captured)
        simulator = self._simulator(place, plan, request, reporter)
        examples = captured.given_examples or captured.examples
        index = min(request.example, len(examples) - 1)
        key = (id(simulator), index, msgspec.json.encode((plan.plan, plan.assigned)))
        if self._kept[0] != key:
            self._kept = (key, {})
        found = list(_found(simulator, plan, nodes, examples[index].tensors(), self._kept[1]))
        stored = {one.replace(".", "_"): one for one in captured.module.state_dict()}
        found = [(_name(one[0], stored), *one[1:]) for one in found]
        if request.save:
            _save(Path(request.save), found)
        tensors = tuple(compare_tensors(*one[:3], channel_axis=one[3]) for one in found)
        return OpValues(
            op_id=request.op_id,
            precision=str(plan.precision_of(home)),
            example=index,
            examples=len(examples),
            tensors=tensors,
            notes=tuple(self._notes(request.recipe, graph, local, home, tensors)),
            saved=request.save,
        )

    def _find(self, op_id: str) -> tuple[int, str]:
        """Index of the graph, and the op's name in it."""
        if not self.captured.has_eager_ops:
            raise AceError.of(
                ErrorCode.UNSUPPORTED,
                "The values inside of an ONNX file cannot be shown",
                why="its runtime runs the whole graph at once",
                remedy="Open the model that the file was exported from",
            )
        for place, (captured, name) in enumerate(self.captured.graphs()):
            for own in captured.table.op_id:
                if name(own) == op_id:
                    return place, own
        raise _unknown(op_id, "the graph has no such op: it changed since it was captured, or Python runs there")

    def _plan(self, request: ValuesRequest, name: Callable[[str], str], captured: CapturedModel) -> BoundPlan:
        """The recipe's plan on one graph, with what a run decided."""
        whole = bind_plan(request.recipe.plan, self.captured.table, op_problem=any_target)
        ops = {own: whole.ops[name(own)] for own in captured.table.op_id if name(own) in whole.ops}
        decided = {own: request.assigned.get(name(own)) for own in ops}
        chosen = {own: replace(ops[own], assigned=Precision(word)) for own, word in decided.items() if word}
        return BoundPlan(request.recipe.plan, ops | chosen)

    def _simulator(self, place: int, plan: BoundPlan, request: ValuesRequest, reporter: Reporter) -> Simulator:
        choice = ranges_of(request.recipe)
        targets = select_targets([request.target]) if request.target else targets_of(request.recipe)
        style: Int8Style = most_rounding(one.int8_style(plan.plan, choice) for one in targets)
        ranges_key = (place, choice) if Precision.INT8_STATIC in plan.precisions else None
        if ranges_key and ranges_key not in self._ranges:
            reporter.phase(Phase.CALIBRATE, "ranges of the values")
            captured, graph_module = self.captured.graphs()[place].captured, self._graphs[place].graph_module
            samples = request.recipe.calibration.samples
            examples = read_calibration(self.data, captured, samples=samples) if self.captured.is_whole else ()
            flat = [one.tensors() for one in examples or captured.examples]
            self._ranges[ranges_key] = observe_ranges(graph_module, flat, choice=choice, reporter=reporter)
            reporter.phase(Phase.VALUES, request.op_id)
        key = ranges_key or place, style.name
        if key not in self._simulators:
            ranges = self._ranges.get(ranges_key)
            self._simulators[key] = Simulator(self._graphs[place], ranges=ranges, style=style)
        return self._simulators[key]

    def _notes(
        self, recipe: Recipe, graph: FloatGraph, local: str, home: str, tensors: tuple[TensorValues, ...]
    ) -> Iterator[str]:
        if any(one.compressed is not None for one in tensors):
            yield _SIMULATED
            if recipe.improve.methods:
                yield _NOT_IMPROVED
        if home != local or home in graph.folded.values():
            yield "The batch norm is folded into its convolution: result and weights are those of both together"
        if not self.captured.is_whole:
            yield _SUBGRAPH
        if recipe.prune.method is not PruneMethod.NONE:
            yield _NOT_PRUNED


def _nodes_of(graph: FloatGraph, local: str) -> list[fx.Node]:
    """The node of an op or input; of the model's output those that it is made of."""
    for node in graph.graph_module.graph.nodes:
        if node.op == "output" and node.name == local:
            return [one for one in node.all_input_nodes if one.op != "get_attr"][:_MOST_RESULTS]
        if node.meta.get(OP_ID) == local or (node.op == "placeholder" and node.name == local):
            return [node]
    return []


def _found(
    simulator: Simulator, plan: BoundPlan, nodes: list[fx.Node], example: list[Tensor], kept: Kept
) -> Iterator[Found]:
    """The results, then the weights."""
    is_float = plan.precisions <= {Precision.FP32}
    pairs = [
        pair
        for sides in simulator.values(plan, example, nodes, kept)
        for pair in zip(*map(pytree.tree_leaves, sides), strict=True)
        if isinstance(pair[0], Tensor)
    ][:_MOST_RESULTS]
    for at, (wide, rounded) in enumerate(pairs):
        yield (f"result {at + 1}" if len(pairs) > 1 else "result"), wide, None if is_float else rounded, None
    for node in nodes if len(nodes) == 1 and OP_ID in nodes[0].meta else ():
        main = simulator.weight(plan, node)
        for source in node.all_input_nodes:
            stored = constant_of(simulator.graph_module, source)
            if stored is not None:
                is_main = main is not None and main[0].data_ptr() == stored.data_ptr()
                low = plan.precision_of(node.meta[OP_ID]) is not Precision.FP32
                yield (
                    str(source.target),
                    stored,
                    main[1] if main is not None and is_main and low else None,
                    main[2] if main is not None and is_main else None,
                )


def _name(name: str, stored: Mapping[str, str]) -> str:
    """The name of a weight as the model has it; one that a batch norm was folded into says so."""
    plain = name.removesuffix("_folded")
    if plain == name:
        return name
    weight = stored.get(plain.removesuffix("_bias"), plain)
    return f"{weight.removesuffix('weight') + 'bias' if plain.endswith('_weight_bias') else weight}, folded"


def _save(path: Path, found: list[Found]) -> None:
    """Write the whole tensors. 16-bit floats that numpy lacks become float32."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    for name, wide, rounded, _ in found:
        for word, value in (("float", wide), ("compressed", rounded)):
            if value is not None:
                plain = value.detach().cpu()
                arrays[f"{name} {word}"] = (plain.float() if plain.dtype is torch.bfloat16 else plain).numpy()
    with explained(ErrorCode.NOT_FOUND, f"{path.name} could not be written", remedy="Choose another folder"):
        np.savez(path, allow_pickle=False, **arrays)


def _unknown(op_id: str, why: str) -> AceError:
    return AceError.of(
        ErrorCode.NOT_FOUND, f"There are no values of {op_id}", why=why, remedy="Choose another op, or trace again"
    )


class LastModel:
    """Keeps the last model that was asked about, until another one or another job comes."""

    def __init__(self) -> None:
        self._key: object = None
        self._model: Watched | None = None
        self._files: tuple[Path, ...] = ()

    def get(self, request: ValuesRequest, make: Callable[[], tuple[Watched, tuple[Path, ...]]]) -> Watched:
        """The model of a request: the kept one if choices, trust and files are as they were."""
        recipe = request.recipe
        choices = msgspec.json.encode((recipe.model, recipe.inputs, recipe.capture, recipe.calibration, recipe.measure))
        asked = (request.folder, request.trusted_sha256, request.trust_all, choices)
        if self._model is None or self._key != (asked, _stamps(self._files)):
            self.forget()
            self._model, self._files = make()
            self._key = asked, _stamps(self._files)
        return self._model

    def forget(self) -> None:
        """Free its memory."""
        self._key, self._model, self._files = None, None, ()


def _stamps(files: tuple[Path, ...]) -> list[tuple[int, int]]:
    """Time and size of each file; zeros for one that is gone."""
    found = []
    for path in files:
        there = path.stat() if path.exists() else None
        found.append((there.st_mtime_ns, there.st_size) if there is not None else (0, 0))
    return found
