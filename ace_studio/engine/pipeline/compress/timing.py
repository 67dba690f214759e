"""The latency of the baseline and of every candidate that was built, in the same rounds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import msgspec

from ace_studio.engine import measure
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob, bound_call
from ace_studio.records.messages import Phase


def time_beside(
    job: CompressionJob, other: Callable[..., object] | None, candidate: Candidate, *, rounds: int
) -> tuple[measure.Samples, measure.Samples]:
    """A few rounds of another model and a candidate in turn: enough for a decision, not for the report."""
    example = job.captured.examples[0]
    with job.builders.paused() if job.builders is not None else nullcontext():
        samples = measure.measure_interleaved(
            {"other": bound_call(example, other), "candidate": bound_call(example, candidate.lowered)},
            rounds=rounds,
            reporter=job.reporter,
            timer=measure.timer_for(job.captured.device),
        )
    return samples["other"], samples["candidate"]


def measure_latency(job: CompressionJob) -> None:
    """Measure the candidates and the baseline interleaved on the first example; each run gets its speed-up."""
    job.reporter.phase(Phase.MEASURE, f"{len(job.state.alive)} candidates and the baseline, in turn")
    example = job.captured.examples[0]
    calls: dict[str, Callable[[], object]] = {job.state.baseline.name: bound_call(example, job.reference)}
    for index, candidate in enumerate(job.state.alive):
        calls[f"{candidate.label} #{index}"] = bound_call(example, candidate.lowered)
    is_gpu = job.captured.device.type == "cuda"
    samples = measure.measure_interleaved(
        calls, rounds=job.recipe.measure.rounds, reporter=job.reporter, timer=measure.timer_for(job.captured.device)
    )
    base = samples.pop(job.state.baseline.name)
    job.state.baseline = msgspec.structs.replace(job.state.baseline, latency_ms=base.latency())
    job.tell_baseline()
    for candidate, one in zip(job.state.alive, samples.values(), strict=True):
        ratio = measure.ratio_of(base, one)
        candidate.note(latency_ms=one.latency(), speedup=ratio.median, speedup_low=ratio.low, speedup_high=ratio.high)
        job.tell(candidate)
    if not is_gpu and (busy := measure.contention([base, *samples.values()], threads=job.threads)):
        job.reporter.warn("contention", busy)
