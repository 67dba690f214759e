"""The latency of the baseline and of every candidate that was built, in the same rounds."""

from collections.abc import Callable, Mapping

import msgspec

from ace_studio.engine import measure
from ace_studio.engine.load import OnnxModule
from ace_studio.engine.pipeline.compress.candidates import Candidate, original_target
from ace_studio.engine.pipeline.compress.job import CompressionJob, bound_call, timed_call
from ace_studio.engine.targets.base import CompiledModule
from ace_studio.engine.torch_private.operators import half_precision_problem
from ace_studio.records.messages import Phase

SMALL_MS = 0.5
"""Faster models are also called beside their runtime alone: of a longer call, the overhead is lost in the noise."""
MIN_ROUNDS = 9
_GIVEN = "the model as given"


def time_beside(
    job: CompressionJob, other: Callable[..., object] | None, candidate: Candidate, *, rounds: int
) -> tuple[measure.Samples, measure.Samples]:
    """A few rounds of another model and a candidate in turn: enough for a decision, not for the report."""
    example = job.captured.examples[0]
    calls = {"other": timed_call(example, other), "candidate": timed_call(example, candidate.lowered)}
    with job.alone():
        samples = job.timed(calls, rounds=rounds)
    return samples["other"], samples["candidate"]


def _measure_overhead(job: CompressionJob, candidate: Candidate) -> None:
    """Of a small model, what a user's call takes beside the runtime alone: the difference of their medians."""
    example, lowered, latency = job.captured.examples[0], candidate.lowered, candidate.run.latency_ms
    bare = lowered.bare(example.copied()) if lowered is not None and latency and latency.p50 < SMALL_MS else None
    if lowered is None or bare is None:
        return
    calls = {"module": bound_call(example, CompiledModule(lowered)), "runtime": bare}
    samples = job.timed(calls, rounds=max(job.recipe.measure.rounds, MIN_ROUNDS))
    more_ms = samples["module"].latency().p50 - samples["runtime"].latency().p50
    candidate.note(overhead_us=round(1e3 * max(0.0, more_ms), 2))


def ratio_facts(name: str, other: measure.Samples, own: measure.Samples) -> dict[str, float]:
    """The fields of a run that hold a speed-up over another model."""
    ratio = measure.ratio_of(other, own)
    return {name: ratio.median, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def _calls_to_time(
    job: CompressionJob, references: Mapping[str, Callable[..., object]]
) -> dict[str, Callable[[], object]]:
    """What is measured, by the names that `measure_latency` looks for."""
    example = job.captured.examples[0]
    calls: dict[str, Callable[[], object]] = {job.state.baseline.name: timed_call(example, job.reference)}
    for index, candidate in enumerate(job.state.running):
        calls[f"{candidate.label} #{index}"] = timed_call(example, candidate.lowered)
    for name, lowered in references.items():
        calls[f"{name} fp32, to compare with"] = timed_call(example, lowered)
    given = job.loaded.given
    if given is not None and not any(map(half_precision_problem, given.halves)):  # else it is slow beyond use
        calls[_GIVEN] = bound_call(given.example(example), given.module)
    return calls


def _warn_if_faster(job: CompressionJob, base: measure.Samples, as_given: measure.Samples | None) -> None:
    """Say it if the user's own module is faster than its copy at fp32, which speed-ups are given over."""
    if (given := job.loaded.given) is None or as_given is None:
        return
    ratio = measure.ratio_of(base, as_given)
    if ratio.low > 1:
        job.reporter.warn(
            "faster-as-given",
            f"At {given.types}, as it was given, the model takes {1 / ratio.median:.2f} of the time that it takes at "
            f"float32: speed-ups over that are {1 / ratio.median:.2f} times those shown",
        )


def measure_latency(job: CompressionJob, references: Mapping[str, Callable[..., object]] = {}) -> None:
    """Measure the candidates and the baseline interleaved on the first example; each run gets its speed-ups.

    ``references``: target -> fp32 there, measured too, for targets without an fp32 candidate.
    """
    job.reporter.phase(Phase.MEASURE, f"the baseline and {len(job.state.running)} built, in turn")
    with job.alone():
        samples = job.timed(_calls_to_time(job, references), rounds=job.recipe.measure.rounds)
    base = samples.pop(job.state.baseline.name)
    _warn_if_faster(job, base, samples.pop(_GIVEN, None))
    floats = {name: samples.pop(f"{name} fp32, to compare with") for name in references}
    job.state.baseline = msgspec.structs.replace(job.state.baseline, latency_ms=base.latency())
    job.tell_baseline()
    timed = list(zip(job.state.running, samples.values(), strict=True))
    floats |= {candidate.run.target: one for candidate, one in timed if candidate.run.is_exact}
    is_rounded = isinstance(job.reference, OnnxModule) and job.reference.is_rounded
    if job.loaded.original is None and not is_rounded:  # else another model is lowered than the baseline, or at fp32
        floats.setdefault(original_target(job.loaded.frontend), base)
    for candidate, one in timed:
        candidate.note(latency_ms=one.latency(), speed_undecided=base.undecided, **ratio_facts("speedup", base, one))
        if not candidate.run.is_exact and (exact := floats.get(candidate.run.target)) is not None:
            candidate.note(**ratio_facts("float_speedup", exact, one))
        _measure_overhead(job, candidate)
        job.tell(candidate)
    if base.is_throttled:
        job.reporter.warn("throttling", f"not decided what is faster: {base.undecided}")
    elif base.undecided:
        job.reporter.warn("contention", f"not decided what is faster: {base.undecided}")
