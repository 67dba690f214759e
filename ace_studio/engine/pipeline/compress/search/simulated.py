"""The fidelity of whole plans by simulation: seconds where a build takes minutes, with what ops do to each other.

The scan tells what each op loses by itself. Adding that up overlooks that ops share their noise: an addition behind two
convolutions is rounded if both are. What a simulation overlooks in turn, the kernels of a runtime, is the same for
similar plans, so that a build says how far to trust the simulation of the next.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve import SIMULATION_ERRORS
from ace_studio.engine.pipeline.compress.candidates import make_candidate
from ace_studio.engine.pipeline.compress.improving import Methods, ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search.mixing import Chosen
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.simulate import FloatGraph, Int8Style, Simulator, float_graph, rounding_sums, small_ends
from ace_studio.records.messages import Phase
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Plan, Precision

MOST_EXAMPLES = 4
"""Examples that a plan is simulated on."""
EXACT_DB = 100.0
"""Above this, a simulation shows the rounding of fp32."""


class PlanSimulator:
    """Simulates the plans of one job; ranges are found once for plans with the same improvements."""

    def __init__(self, job: CompressionJob) -> None:
        self._job = job
        self._is_possible = True
        self._exact: list[tuple[list[Tensor], list[Tensor]]] = []
        """Inputs and float outputs of the examples."""
        self._ranges: dict[object, Mapping[str, ValueRange]] = {}

    def fidelity_db(self, variant: SearchVariant, plan: Plan) -> float | None:
        """Fidelity under a plan, with the variant's target and methods; None if it cannot be simulated."""
        captured = self._job.captured.torch_graph if self._is_possible else None
        if captured is None:
            return None
        self._job.reporter.phase(Phase.SENSITIVITY, f"simulating mixtures for {variant.target.label}")
        try:
            return self._simulated(captured, variant, plan)
        except SIMULATION_ERRORS:
            self._is_possible = False  # the ops of the graph are the same under every plan
            return None

    def _simulated(self, captured: CapturedModel, variant: SearchVariant, plan: Plan) -> float:
        job, target = self._job, variant.target
        bound = make_candidate(target, plan, job.captured.table, device=job.captured.device).plan
        improved, _ = job.improvements.capture_for(
            replace(bound, plan=variant.plan), variant.methods, captured, job.shared
        )
        graph = float_graph(improved)
        if not self._exact:
            exact = Simulator(float_graph(captured))
            given = [one.tensors() for one in captured.given_examples[:MOST_EXAMPLES]]
            self._exact = [(example, exact.float_outputs(example)) for example in given]
        key = (variant.methods, variant.plan.default)
        if key not in self._ranges:
            data: Sequence[Sequence[Tensor]] = [example.tensors() for example in job.calibration()]
            self._ranges[key] = observe_ranges(graph.graph_module, data, choice=ranges_of(job.recipe))
        style = target.int8_style(plan, ranges_of(job.recipe))
        if target.row.has_one_float and Precision.BF16 in bound.precisions:
            bound = with_one_float(bound, graph, style)
        examples, references = zip(*self._exact, strict=True)
        return Simulator(graph, ranges=self._ranges[key], style=style).fidelity_db(bound, examples, references)


def with_one_float(bound: BoundPlan, graph: FloatGraph, style: Int8Style) -> BoundPlan:
    """A plan with bf16 as a runtime computes it whose floats all have one type: what is not low is bf16 too."""
    planned = bound.ops_at(Precision.INT8_STATIC)
    sums = {node.meta[OP_ID] for node in rounding_sums(graph.graph_module, style, planned)}
    ends = {node.meta[OP_ID] for node in small_ends(graph.graph_module, style, planned)}
    targets = {node.meta[OP_ID]: str(node.target) for node in graph.graph_module.graph.nodes if OP_ID in node.meta}

    def is_float(op_id: str, precision: Precision) -> bool:
        if precision is Precision.INT8_STATIC and style.rounds_reads_only:
            is_low = op_id in sums or (is_weighted(targets.get(op_id, "")) and op_id not in ends)
            return op_id in targets and not is_low
        return precision is Precision.FP32

    ops = {
        op_id: replace(op, assigned=Precision.BF16) if is_float(op_id, op.assigned) else op
        for op_id, op in bound.ops.items()
    }
    return replace(bound, ops=ops)


class Expectations:
    """The fidelity that builds of mixtures will show: simulated, corrected by what the most similar build showed."""

    def __init__(self, simulate: Callable[[Chosen, Methods], float | None], methods: Sequence[Methods]) -> None:
        """Make them.

        Args:
            simulate: Fidelity of a mixture whose weights some methods improved, dB; None if it cannot be simulated.
            methods: What may improve the weights of a mixture. They were found with all ops low, and may do harm where
                many are not; which is the case is found for each mixture.
        """
        self._simulate = simulate
        self._methods = tuple(dict.fromkeys(methods))
        self._found: dict[tuple[Chosen, Methods], float | None] = {}
        self._built: list[tuple[Chosen, Methods, float]] = []
        """Mixtures that were built, with what, and measured minus simulated fidelity."""
        self._best: dict[Chosen, Methods] = {}

    def learn(self, chosen: Chosen, methods: Methods, measured_db: float) -> None:
        """Take in the fidelity of a build. What loses nothing in the simulation says nothing of others."""
        simulated = self._db(chosen, methods)
        if simulated is not None and simulated < EXACT_DB:
            self._built.append((chosen, methods, measured_db - simulated))

    def methods_for(self, chosen: Chosen) -> Methods:
        """What is to improve the weights of a mixture: what it is expected to have the highest fidelity with."""
        self.expected_db(chosen)
        return self._best.get(chosen, self._methods[0])

    def expected_db(self, chosen: Chosen) -> float | None:
        """Fidelity of a mixture with the best methods; None if it cannot be simulated."""
        found: dict[float, Methods] = {}
        for methods in self._methods:
            if (simulated := self._db(chosen, methods)) is None:
                return None
            found[simulated + self._offset_db(chosen, methods)] = methods
        self._best[chosen] = found[max(found)]
        return max(found)

    def _offset_db(self, chosen: Chosen, methods: Methods) -> float:
        """That of the most similar build with the same methods, of several the last one; 0 if there is none."""
        built = [(at, offset) for at, own, offset in reversed(self._built) if own == methods]
        return min(built, key=lambda one: _distance(one[0], chosen), default=(chosen, 0.0))[1]

    def _db(self, chosen: Chosen, methods: Methods) -> float | None:
        if (chosen, methods) not in self._found:
            self._found[chosen, methods] = self._simulate(chosen, methods)
        return self._found[chosen, methods]


def _distance(one: Chosen, other: Chosen) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))
