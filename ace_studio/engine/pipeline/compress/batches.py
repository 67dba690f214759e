"""Samples a second at several batch sizes, where the batch is free."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import torch
from torch import Tensor

from ace_studio.engine import measure
from ace_studio.engine.flow import Captured, Example
from ace_studio.engine.pipeline.compress.bench import Bench, bound_call
from ace_studio.records.messages import Phase
from ace_studio.records.results import BatchThroughput

MAX_ROUNDS = 10


def measure_batches(bench: Bench) -> None:
    """Measure the baseline and every candidate at the recipe's batch sizes, interleaved per size."""
    sizes = bench.recipe.measure.batches
    if not sizes:
        return
    symbol = batch_symbol(bench.captured)
    if not symbol:
        bench.reporter.warn(
            "static-batch",
            "The throughput over batch sizes was not measured: the first dimension of the first input is fixed",
            where="[measure] batches",
        )
        return
    for size in sizes:
        _measure_one(bench, with_batch(bench.captured, symbol, size), size)


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


def _measure_one(bench: Bench, example: Example, size: int) -> None:
    bench.reporter.phase(Phase.MEASURE, f"batch {size}")
    calls: dict[str, Callable[[], object]] = {}
    alive = []
    for candidate in bench.alive:
        call = bound_call(example, candidate.lowered)
        bench.guarded(candidate, lambda _bench, _candidate, call=call: call())  # type: ignore[misc]
        if candidate.lowered is not None:
            alive.append(candidate)
            calls[f"{candidate.label} #{len(alive)}"] = call
    calls = {bench.baseline.name: bound_call(example, bench.reference), **calls}
    samples = measure.measure_interleaved(
        calls,
        rounds=min(MAX_ROUNDS, bench.recipe.measure.rounds),
        reporter=bench.reporter,
        timer=measure.timer_for(bench.captured.device),
    )
    found = [_throughput(size, one.latency().p50) for one in samples.values()]
    bench.baseline = msgspec.structs.replace(bench.baseline, throughput=(*bench.baseline.throughput, found[0]))
    bench.tell_baseline()
    for candidate, one in zip(alive, found[1:], strict=True):
        candidate.note(throughput=(*candidate.run.throughput, one))
        bench.tell(candidate)


def _throughput(batch: int, latency_ms: float) -> BatchThroughput:
    return BatchThroughput(batch=batch, latency_ms=latency_ms, samples_per_s=round(batch / latency_ms * 1e3, 3))
