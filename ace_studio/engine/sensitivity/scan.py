"""The sensitivity scan: two forward and a few backward passes find the noise that every op alone adds."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.ops.roles import is_product, stores_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import decibels
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.observers import RangeChoice, ValueObservers
from ace_studio.engine.quantize.simulate import READS, Int8Style, float_graph, int8_layout, rounding_sums
from ace_studio.engine.quantize.simulate.int8_style import PASSING, Int8Layout, readers_of
from ace_studio.engine.quantize.visit import VisitingRun
from ace_studio.engine.sensitivity.interpreters import ProbingRun, RoundedRun, WatchedOps, WatchingRun
from ace_studio.engine.sensitivity.local_error import SIMULATED, WatchedOp, constant_names, operands_of
from ace_studio.engine.sensitivity.saved import SavedScan, read_scan, scan_key, write_scan
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision, Scheme


def watched_ops(graph_module: fx.GraphModule, style: Int8Style) -> dict[str, WatchedOp]:
    """Op id -> what is rounded there if every op is at low precision that can be, in the order of the graph.

    Args:
        graph_module: That of a `FloatGraph`.
        style: What the runtime rounds around ops at int8-static.
    """
    everything = {node.meta[OP_ID] for node in graph_module.graph.nodes if OP_ID in node.meta}
    layout = int8_layout(graph_module, everything, style)
    sums = {node for node in rounding_sums(graph_module, style) if node.target is not torch.ops.aten.add_.Tensor}
    constants = constant_names(graph_module)
    found = {}
    for node in graph_module.graph.nodes:
        if node.op != "call_function" or OP_ID not in node.meta:
            continue
        if stores_table(str(node.target), Precision.INT8_WEIGHT) and node.args[0].name in constants:
            found[node.meta[OP_ID]] = WatchedOp((), table=str(node.target))
            continue
        is_product = is_weighted(str(node.target))
        operands = operands_of(node, constants) if is_product or node in sums else ()
        result = _own_result(node, layout)
        if operands or result:
            found[node.meta[OP_ID]] = WatchedOp(operands, result, follows=not is_product)
    return found


def _own_result(node: fx.Node, layout: Int8Layout) -> str:
    """The node whose range the 8-bit result of an op has; empty if only products read it, which round it anyway."""
    given = layout.results.get(node)
    if given is None or str(node.target) in PASSING:
        return ""
    readers = readers_of(given, through=PASSING)
    products = [one for one in readers if one in layout.eight_bit and is_product(str(one.target))]
    return "" if readers and products == readers else layout.values[given]


BUDGET = 12.0
"""Forward passes over the samples that a scan of differentiable ops may cost; those that probes do not need run the
most sensitive ops alone at low precision."""
Noise = dict[Precision, dict[str, float]]
MOST_ALONE = 200
"""Runs of the whole model, one op low in each, that an automatic scan may spend on ops without gradients."""
_SEED = 7
_UNCLEAR_NOTE = "{count} ops get no gradient, so each was run alone at low precision: {cost} more forward passes"
_SKIPPED_NOTE = (
    "{count} ops get no gradient, and running each alone at low precision would take {cost} forward passes; they are "
    'left out (scan = "on" in [sensitivity] runs them)'
)


@dataclass(frozen=True)
class ScanRequest:
    """What to scan."""

    captured: CapturedModel
    samples: Sequence[Sequence[Tensor]]
    """Flat tensor inputs of each sample."""
    precisions: Sequence[Precision]
    scheme: Scheme = field(default_factory=Scheme)
    ranges: RangeChoice = field(default_factory=RangeChoice)
    """How static ranges follow from the values."""
    style: Int8Style = READS
    """What the runtime rounds around ops at int8-static."""
    probes: int = 4
    folder: Path | None = None
    """Where results are saved under the key of the scan; None saves nothing."""
    budget: float = BUDGET
    """Forward passes over the samples; 0: probes only."""
    is_thorough: bool = False
    """Run ops without gradients one at a time, whatever that costs."""


class Scan:
    """One scan of one captured graph.

    Watched are the products (any weighted op with a matrix to round), at int8-static also the ops behind them
    whose result the runtime rounds; what is rounded anyway, by the product that reads it, is that product's.
    """

    def __init__(self, request: ScanRequest, reporter: Reporter | None = None) -> None:
        self._request = request
        self._reporter = reporter or Reporter()
        self._graph = float_graph(request.captured).graph_module
        self._precisions = [one for one in request.precisions if one in SIMULATED]
        found = watched_ops(self._graph, request.style)
        self.watched = {op_id: op for op_id, op in found.items() if op.precisions(self._precisions)}
        self._flops = _flops_of(request.captured, self.watched)
        key = scan_key(
            request.captured.fingerprint,
            request.samples,
            precisions=self._precisions,
            scheme=request.scheme,
            probes=request.probes,
            arithmetic=f"{request.ranges} {request.style.name} tables",
        )
        self._path = request.folder / f"{key}.sensitivity.json" if request.folder else None
        self.saved = read_scan(self._path, key) if self._path else SavedScan(key=key)
        self._exact: list[list[Tensor]] | None = None

    def run(self, told: Callable[[Noise], None] = lambda _: None) -> Noise:
        """Precision -> op id -> noise power at the outputs, relative to their signal, that the op adds by itself.

        Args:
            told: Called with the noise found so far after every sample.

        Raises: Cancelled; what was found until then is saved.
        """
        if not self.saved.ended:
            if self.watched and self._precisions and self._request.samples:
                self._scan(told)
            self.saved.ended = True
            self._keep()
        return self.noise()

    def _scan(self, told: Callable[[Noise], None]) -> None:
        samples = self._request.samples
        if not self.saved.powers:
            self._find_ranges()
        single = [(one, op_id) for one in self._precisions for op_id in self.watched_at(one)]
        if 1.0 + len(single) <= self._request.budget:  # so few that running each alone is cheap
            for precision, op_id in single:
                self._run_alone(op_id, precision)
            self.saved.samples_done = len(samples)
            return
        for index in range(self.saved.samples_done, len(samples)):
            self._reporter.advance(index / len(samples), f"probes, sample {index + 1} of {len(samples)}")
            self._probe_sample(index)
            self._keep()
            told(self.noise())
        self._run_unclear()
        self._run_most_sensitive()

    def watched_at(self, precision: Precision) -> list[str]:
        """The ops that differ at a precision, in the order of the graph."""
        return [op_id for op_id, op in self.watched.items() if op.precisions([precision])]

    def noise(self) -> Noise:
        """The noise found so far, in the order of the graph."""
        share = self.saved.samples_done / max(1, len(self._request.samples))
        found: Noise = {}
        for precision in self._precisions:
            summed = self.saved.noise.get(precision, {})
            alone = self.saved.alone.get(precision, {})
            row = {}
            for op_id in self.watched_at(precision):
                if op_id in alone:
                    row[op_id] = alone[op_id]
                elif share and op_id not in self.saved.unclear:
                    row[op_id] = summed.get(op_id, 0.0) / self._request.probes / share
            found[precision] = row
        return found

    # --- the passes ---

    def _find_ranges(self) -> None:
        read = {one.source for op in self.watched.values() for one in op.operands if one.axis is None}
        names = read | {op.result for op in self.watched.values()}
        observers = ValueObservers(self._request.ranges)

        def see(node: fx.Node, value: Tensor) -> None:
            if node.name in names and value.is_floating_point():
                observers.see(node.name, value)

        watch = VisitingRun(self._graph, see)
        powers: list[float] = []
        self._exact = []
        with torch.no_grad():
            for index, sample in enumerate(self._request.samples):
                self._reporter.advance(None, f"ranges, sample {index + 1} of {len(self._request.samples)}")
                outputs = watch.run(*_copies(sample))
                self._exact.append([one.clone() for one in outputs])
                powers = [a + _power(b) for a, b in zip(powers or [0.0] * len(outputs), outputs, strict=True)]
        found = observers.ranges(lambda _: self._request.scheme.activations)
        self.saved.ranges = {name: (one.low, one.high) for name, one in found.items()}
        self.saved.powers = tuple(powers)
        self.saved.forwards += 1.0
        self._keep()

    def _probe_sample(self, index: int) -> None:
        """Add the noise of one sample; if the graph cannot be differentiated, every op is unclear."""
        request = self._request
        generator = torch.Generator().manual_seed(_SEED + index)
        run = ProbingRun(
            self._graph, self.watched, precisions=self._precisions, ranges=self.saved.ranges, scheme=request.scheme
        )
        weights = [1.0 / math.sqrt(power) if power > 0 and math.isfinite(power) else 0.0 for power in self.saved.powers]
        try:
            with torch.enable_grad():
                outputs = run.run(*_copies(request.samples[index]))
                for _ in range(request.probes):
                    self._reporter.check()
                    run.probe(outputs, weights, generator)
                    self._add(run.take())
        except RuntimeError as error:  # autograd refuses: an op without a derivative, a value written over
            self.saved.notes = (f"the graph cannot be differentiated: {str(error).splitlines()[0][:200]}",)
            run.reached.clear()
        reachable = _ops_before_outputs(self._graph)
        lost = {one for one in self.watched if one in reachable and one not in run.reached} | run.unclear
        self.saved.unclear = tuple(sorted({*self.saved.unclear, *lost}))
        self.saved.forwards += self._cost(run) / len(request.samples)
        self.saved.samples_done = index + 1

    def _add(self, noise: Mapping[tuple[str, Precision], float]) -> None:
        for (op_id, precision), one in noise.items():
            row = self.saved.noise.setdefault(str(precision), {})
            row[op_id] = row.get(op_id, 0.0) + one

    def _run_unclear(self) -> None:
        """Run the products without gradients one at a time."""
        unclear = [one for one, op in self.watched.items() if one in self.saved.unclear and not op.follows]
        cost = len(unclear) * len(self._precisions)
        if not unclear:
            return
        is_run = self._request.is_thorough or cost <= MOST_ALONE
        note = (_UNCLEAR_NOTE if is_run else _SKIPPED_NOTE).format(count=len(unclear), cost=cost)
        self.saved.notes = (*self.saved.notes, note)
        if not is_run:
            return
        for precision, op_id in itertools.product(self._precisions, unclear):
            self._run_alone(op_id, precision)

    def _run_most_sensitive(self) -> None:
        """Spend the rest of the budget on the most sensitive ops: gradients are a first-order estimate."""
        found = self.noise()
        ranked = {precision: sorted(row, key=lambda one: -row[one]) for precision, row in found.items()}
        for place in range(len(self.watched)):
            for precision, ops in ranked.items():
                if self.saved.forwards > self._request.budget - 1.0:
                    return
                if place < len(ops):
                    self._run_alone(ops[place], precision)

    def _run_alone(self, op_id: str, precision: Precision) -> None:
        row = self.saved.alone.setdefault(str(precision), {})
        if op_id not in row:
            self._reporter.advance(None, f"{op_id} alone at {precision}")
            row[op_id] = self.alone(op_id, precision)
            self.saved.forwards += 1.0
            self._keep()

    def alone(self, op_id: str, precision: Precision) -> float:
        """The relative noise of the whole model with this op alone at the precision."""
        if not self.saved.powers:
            self._find_ranges()
        return self.together({op_id: precision})

    def together(self, precisions: Mapping[str, Precision]) -> float:
        """The relative noise of the whole model with these ops low, all at once."""
        if not self.saved.powers:
            self._find_ranges()
        if self._exact is None:
            self._exact = self._outputs({})
        return self._noise_of(self._exact, self._outputs(precisions))

    def _outputs(self, precisions: Mapping[str, Precision]) -> list[list[Tensor]]:
        run = RoundedRun(
            self._graph, self.watched, precisions=precisions, ranges=self.saved.ranges, scheme=self._request.scheme
        )
        with torch.no_grad():
            return [[one.clone() for one in run.run(*_copies(sample))] for sample in self._request.samples]

    def _noise_of(self, exact: Sequence[Sequence[Tensor]], other: Sequence[Sequence[Tensor]]) -> float:
        total = 0.0
        for index, power in enumerate(self.saved.powers):
            if power > 0:
                noise = sum(_power(a[index].double() - b[index].double()) for a, b in zip(exact, other, strict=True))
                total += noise / power
        return total

    def _cost(self, run: WatchingRun) -> float:
        """The cost of a run, in forward passes over one sample."""
        total = sum(self._flops.values())
        return sum(self._flops[op_id] * count for op_id, count in run.runs.items()) / total

    def _keep(self) -> None:
        if self._path is not None:
            write_scan(self._path, self.saved)


def noise_db(noise: float) -> float:
    """Relative noise power as a signal-to-noise ratio, in dB within [-200, 200]."""
    return decibels(1.0, noise)


def _flops_of(captured: CapturedModel, watched: WatchedOps) -> dict[str, float]:
    table = captured.table
    flops = dict(zip(table.op_id, table.flops, strict=True))
    return {op_id: float(max(1, flops.get(op_id, 0))) for op_id in watched}


def _ops_before_outputs(graph_module: fx.GraphModule) -> set[str]:
    """Ops whose value an output depends on."""
    wanted: set[fx.Node] = set()
    for node in reversed(graph_module.graph.nodes):
        if node.op == "output" or node in wanted:
            wanted.update(node.all_input_nodes)
    return {node.meta[OP_ID] for node in wanted if OP_ID in node.meta}


def _copies(sample: Sequence[Tensor]) -> list[Tensor]:
    return [leaf.detach().clone() for leaf in sample]


def _power(values: Tensor) -> float:
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    wide = values.detach().double()
    return float(wide[wide.isfinite()].square().sum())
