"""The latency of every candidate that is alive, and of the baseline, in the same rounds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import msgspec

from ace_studio.engine import measure
from ace_studio.engine.pipeline.compress.bench import Bench, bound_call
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.records.messages import Phase


def time_beside(
    bench: Bench, other: Callable[..., object] | None, candidate: Candidate, *, rounds: int
) -> tuple[measure.Samples, measure.Samples]:
    """A few rounds of another model and a candidate in turn: enough to decide what comes next, not to report."""
    example = bench.captured.examples[0]
    with bench.builders.paused() if bench.builders is not None else nullcontext():
        samples = measure.measure_interleaved(
            {"other": bound_call(example, other), "candidate": bound_call(example, candidate.lowered)},
            rounds=rounds,
            reporter=bench.reporter,
            timer=measure.timer_for(bench.captured.device),
        )
    return samples["other"], samples["candidate"]


def measure_latency(bench: Bench) -> None:
    """Measure the candidates and the baseline interleaved on the first example; each learns its ratio."""
    bench.reporter.phase(Phase.MEASURE, f"{len(bench.alive)} candidates and the baseline, in turn")
    example = bench.captured.examples[0]
    calls: dict[str, Callable[[], object]] = {bench.baseline.name: bound_call(example, bench.reference)}
    for index, candidate in enumerate(bench.alive):
        calls[f"{candidate.label} #{index}"] = bound_call(example, candidate.lowered)
    is_gpu = bench.captured.device.type == "cuda"
    samples = measure.measure_interleaved(
        calls,
        rounds=bench.recipe.measure.rounds,
        reporter=bench.reporter,
        timer=measure.timer_for(bench.captured.device),
    )
    base = samples.pop(bench.baseline.name)
    bench.baseline = msgspec.structs.replace(bench.baseline, latency_ms=base.latency())
    bench.tell_baseline()
    for candidate, one in zip(bench.alive, samples.values(), strict=True):
        ratio = measure.ratio_of(base, one)
        candidate.note(latency_ms=one.latency(), speedup=ratio.median, speedup_low=ratio.low, speedup_high=ratio.high)
        bench.tell(candidate)
    if not is_gpu and (busy := measure.contention([base, *samples.values()], threads=bench.threads)):
        bench.reporter.warn("contention", busy)
