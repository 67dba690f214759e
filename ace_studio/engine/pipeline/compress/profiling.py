"""Times, costs and errors of every op, after everything is built, measured and verified."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from torch import Tensor

from ace_studio.engine.environment import processor_name
from ace_studio.engine.flow import Captured, CapturedModel
from ace_studio.engine.node_times import time_nodes
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob, timed_call
from ace_studio.engine.pipeline.compress.timing import MIN_ROUNDS
from ace_studio.engine.profile.ceilings import ceilings_here
from ace_studio.engine.profile.roofline import summary, with_costs, within
from ace_studio.engine.quantize.calibrate import observe_ranges
from ace_studio.engine.quantize.flat_graph import flat_graph, op_ids
from ace_studio.engine.quantize.observers import ValueRange
from ace_studio.engine.quantize.simulate import FloatGraph, Int8Style, Simulator, float_graph
from ace_studio.records.messages import Phase
from ace_studio.records.private_folder import user_cache_folder
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import Latency, OpReport, OpsProfile
from ace_studio.records.targets import TARGET_ROWS

_WHOLE = "the whole model, at the sizes that its ops were timed at"

ERROR_EXAMPLES = 2
"""Examples that the errors along the graph are measured on."""
_EAGER_SOURCE = TARGET_ROWS["eager"].times_source


def profile_all(job: CompressionJob) -> None:
    """Give the ops of the baseline and of every run their times, costs, bounds and errors."""
    if not job.recipe.measure.profile:
        return
    find_ceilings(job)
    _profile_baseline(job)
    errors = _ErrorsAlongTheGraph(job)
    for candidate in job.state.alive:
        job.has_figure(candidate, lambda job, one: _profile_run(job, one, errors), figure="profile of ops")
        job.tell(candidate)


def find_ceilings(job: CompressionJob) -> None:
    """Learn what this machine can do at most, once per job; nothing on a GPU."""
    if job.state.ceilings is None and job.captured.device.type == "cpu":
        job.reporter.phase(Phase.MEASURE, "what this machine can do at most")
        with job.alone():
            job.state.ceilings = ceilings_here(processor_name(), threads=job.threads, folder=_ceilings_folder())


def _ceilings_folder() -> Path:
    """Folder of the stored ceilings; the one of compiled code, which is this user's too, if the user's cache is off."""
    if os.environ.get("ACE_STUDIO_CACHE", "") != "off":
        return user_cache_folder()
    return Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or tempfile.gettempdir())


def _profile_baseline(job: CompressionJob) -> None:
    if not job.captured.has_eager_ops or job.reference is not job.captured.module:
        return  # an ONNX file has no eager ops, and the graph of a pruned model is not the baseline's
    job.reporter.phase(Phase.MEASURE, "the float model, op by op")
    times = eager_times(job.captured, check=job.reporter.check)
    table = job.captured.table
    ops = tuple(
        OpReport(
            id=table.op_id[row],
            op=table.op[row],
            module=table.module[row],
            shape=table.shape[row],
            device=table.device[row],
            planned=str(Precision.FP32),
            actual=str(Precision.FP32),
            latency_ms=times.get(table.op_id[row]),
        )
        for row in table.op_rows()
    )
    ops, profile = _explained(job, ops, job.reference, job.state.baseline.latency_ms, source=_EAGER_SOURCE)
    ops = with_costs(ops, table, job.state.ceilings)
    job.state.baseline = msgspec.structs.replace(job.state.baseline, ops=ops, profile=profile)
    job.tell_baseline()


def eager_times(captured: Captured, *, check: Callable[[], None]) -> dict[str, float]:
    """Op id -> median time of one call, ms. Subgraphs run on the values of the traced example."""
    times_ms: dict[str, float] = {}
    for graph in captured.graphs():
        graph_module = flat_graph(graph.captured.program)
        names = op_ids(graph_module)
        measured = time_nodes(graph_module, graph.captured.example.tensors(), check=check)
        times_ms |= {graph.id_in_model(names[name]): time_ms for name, time_ms in measured.items() if name in names}
    return times_ms


def _profile_run(job: CompressionJob, candidate: Candidate, errors: _ErrorsAlongTheGraph) -> None:
    source = candidate.target.row.times_source or f"{candidate.target.label}'s own counters"
    ops, profile = _explained(job, candidate.run.ops, candidate.lowered, candidate.run.latency_ms, source=source)
    ops = with_costs(ops, job.captured.table, job.state.ceilings)
    found = errors.of(candidate)
    ops = tuple(msgspec.structs.replace(op, error_db=round(found[op.id], 2)) if op.id in found else op for op in ops)
    candidate.note(ops=ops, profile=profile)


def _explained(
    job: CompressionJob,
    ops: Sequence[OpReport],
    whole: Callable[..., object] | None,
    latency: Latency | None,
    *,
    source: str,
) -> tuple[tuple[OpReport, ...], OpsProfile | None]:
    """The ops `within` the whole, and how much of it they explain, both on the traced example, which costs are of too.

    The latency is of the first example. Where that has other sizes (a batch of 1 is traced as a larger one), the whole
    is timed here on the traced example.
    """
    if latency is None:
        return tuple(ops), None
    traced, whole_ms = job.captured.example, latency.p50
    if traced.size_words != job.captured.examples[0].size_words and any(op.latency_ms is not None for op in ops):
        timed = job.timed({_WHOLE: timed_call(traced, whole)}, rounds=MIN_ROUNDS)
        whole_ms = timed[_WHOLE].latency().p50
    ops = within(ops, whole_ms)
    return ops, summary(ops, latency_ms=whole_ms, source=source, measured_input=traced.size_words)


class _ErrorsAlongTheGraph:
    """Simulates plans on the captured graph, once for targets that round alike."""

    def __init__(self, job: CompressionJob) -> None:
        self._job = job
        self._choice = ranges_of(job.recipe)
        self._simulators: dict[str, Simulator] = {}
        self._known: dict[object, Mapping[str, float]] = {}
        self._ready: tuple[FloatGraph, dict[str, ValueRange]] | None = None

    def of(self, candidate: Candidate) -> Mapping[str, float]:
        """Op id -> SQNR of its value, dB; nothing for a model in subgraphs, a file of ONNX, or a plan all in fp32."""
        captured = self._job.captured.torch_graph
        if captured is None or candidate.plan.precisions <= {Precision.FP32}:
            return {}
        style = candidate.target.int8_style(candidate.plan.plan, self._choice)
        key = tuple(sorted(candidate.plan.assigned.items())), candidate.plan.plan, style.name
        if key not in self._known:
            self._job.reporter.phase(Phase.MEASURE, f"errors along the graph of {candidate.label}")
            self._known[key] = self._find(captured, candidate, style)
        return self._known[key]

    def _find(self, captured: CapturedModel, candidate: Candidate, style: Int8Style) -> dict[str, float]:
        """Simulate the plan; a failure is a warning, because the run itself is built and verified."""
        try:
            found = self._simulator(captured, style).errors(candidate.plan, self._examples(captured))
        except (ValueError, KeyError, RuntimeError) as error:
            why = str(error).strip().partition("\n")[0][:200]
            self._job.reporter.warn("no-errors", f"The errors along the graph could not be simulated: {why}")
            return {}
        return {op_id: error.sqnr_db for op_id, error in found.items()}

    def _simulator(self, captured: CapturedModel, style: Int8Style) -> Simulator:
        if style.name not in self._simulators:
            graph, ranges = self._graph_and_ranges(captured)
            self._simulators[style.name] = Simulator(graph, ranges=ranges, style=style)
        return self._simulators[style.name]

    def _graph_and_ranges(self, captured: CapturedModel) -> tuple[FloatGraph, dict[str, ValueRange]]:
        """Found once for all styles."""
        if self._ready is None:
            graph = float_graph(captured)
            needs_ranges = any(Precision.INT8_STATIC in one.plan.precisions for one in self._job.state.alive)
            examples = [example.tensors() for example in self._job.calibration()] if needs_ranges else []
            self._ready = graph, observe_ranges(graph.graph_module, examples, choice=self._choice)
        return self._ready

    @staticmethod
    def _examples(captured: CapturedModel) -> Sequence[Sequence[Tensor]]:
        return [example.tensors() for example in captured.examples[:ERROR_EXAMPLES]]
