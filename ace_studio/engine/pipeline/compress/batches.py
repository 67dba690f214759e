"""Samples a second at several batch sizes, where the batch is free."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import torch
from torch import Tensor

from ace_studio.engine import measure
from ace_studio.engine.flow import Captured, Example
from ace_studio.engine.pipeline.compress.job import CompressionJob, bound_call
from ace_studio.records.messages import Phase
from ace_studio.records.results import BatchThroughput

_MAX_ROUNDS = 10


def measure_batches(job: CompressionJob) -> None:
    """Measure the baseline and every candidate at the recipe's batch sizes, interleaved per size."""
    sizes = job.recipe.measure.batches
    if not sizes:
        return
    symbol = batch_symbol(job.captured)
    if not symbol:
        job.reporter.warn(
            "static-batch",
            "The throughput over batch sizes was not measured: the first dimension of the first input is fixed",
            where="[measure] batches",
        )
        return
    for size in sizes:
        _measure_one(job, with_batch(job.captured, symbol, size), size)


def batch_symbol(captured: Captured) -> str:
    """Symbol of the first dimension of the first input; empty if that is fixed."""
    dims = captured.dynamic_dims()
    return dims[0].get(0, "") if dims else ""


def with_batch(captured: Captured, symbol: str, size: int) -> Example:
    """The first example with every dimension of this symbol at ``size``, its content repeated or cut."""
    dims = iter(captured.dynamic_dims())

    def resized(tensor: Tensor) -> Tensor:
        for index, found in next(dims).items():
            if found == symbol:
                rows = torch.arange(size, device=tensor.device) % tensor.shape[index]
                tensor = tensor.index_select(index, rows)
        return tensor

    return captured.examples[0].map_tensors(resized)


def _measure_one(job: CompressionJob, example: Example, size: int) -> None:
    job.reporter.phase(Phase.MEASURE, f"batch {size}")
    calls: dict[str, Callable[[], object]] = {}
    alive = []
    for candidate in job.state.running:
        call = bound_call(example, candidate.lowered)
        once = lambda _job, _candidate, call=call: call()  # noqa: E731 - bound to this call
        if job.has_figure(candidate, once, figure=f"throughput at batch {size}"):
            alive.append(candidate)
            calls[f"{candidate.label} #{len(alive)}"] = call
    calls = {job.state.baseline.name: bound_call(example, job.reference), **calls}
    samples = measure.measure_interleaved(
        calls,
        rounds=min(_MAX_ROUNDS, job.recipe.measure.rounds),
        reporter=job.reporter,
        timer=measure.timer_for(job.captured.device),
    )
    found = [_throughput(size, one.latency().p50) for one in samples.values()]
    job.state.baseline = msgspec.structs.replace(
        job.state.baseline, throughput=(*job.state.baseline.throughput, found[0])
    )
    job.tell_baseline()
    for candidate, one in zip(alive, found[1:], strict=True):
        candidate.note(throughput=(*candidate.run.throughput, one))
        job.tell(candidate)


def _throughput(batch: int, latency_ms: float) -> BatchThroughput:
    return BatchThroughput(batch=batch, latency_ms=latency_ms, samples_per_s=round(batch / latency_ms * 1e3, 3))
