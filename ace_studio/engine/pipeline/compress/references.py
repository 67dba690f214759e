"""fp32 of a runtime, built only to be timed beside the compressed candidates of that runtime."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ace_studio.engine.pipeline.compress.candidates import Candidate, original_target
from ace_studio.engine.pipeline.compress.job import CompressionJob, bound_call
from ace_studio.engine.pipeline.compress.trying import built_at_fp32
from ace_studio.engine.targets.base import Lowered
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import TargetAtWork
from ace_studio.records.recipes.plan import Precision

SOON_BUILT_S = 5.0
"""What took longer to compress gets no reference, because fp32 of the same runtime takes about as long to build..."""
LONGEST_TIMING_S = 10.0
"""Neither does a model for which the rounds of one more candidate would take longer..."""
SHARE = 0.2
"""... unless that is at most this part of what the job took so far: a compiler's build in a long run."""


@contextmanager
def float_references(job: CompressionJob) -> Iterator[dict[str, Lowered]]:
    """Target -> fp32 there, for targets with a compressed candidate and no fp32 one, where that costs few seconds."""
    found: dict[str, Lowered] = {}
    for candidate in _without_float(job):
        if (lowered := _built(job, candidate)) is not None:
            found[candidate.run.target] = lowered
    try:
        yield found
    finally:
        found.clear()


def _without_float(job: CompressionJob) -> list[Candidate]:
    """One soon built candidate of each target that has no fp32 candidate."""
    known = {one.run.target for one in job.state.running if one.run.precision == Precision.FP32}
    if job.loaded.original is None:
        known.add(original_target(job.loaded.frontend))
    most_s = max(SOON_BUILT_S, SHARE * _seconds_so_far(job))
    compressed = {
        one.run.target: one
        for one in job.state.running
        if one.run.build_seconds is not None and one.run.build_seconds <= most_s
    }
    return [one for name, one in compressed.items() if name not in known]


def _seconds_so_far(job: CompressionJob) -> float:
    return sum(job.reporter.seconds_by_phase().values())


def _built(job: CompressionJob, beside: Candidate) -> Lowered | None:
    """None if it cannot be built, computes something else, or takes long: then the gain over it is not measured."""
    index = job.state.candidates.index(beside)
    job.reporter.tell(TargetAtWork(job=job.reporter.job, target=beside.target.name, index=index))
    try:
        lowered = built_at_fp32(job, beside)
        if lowered is None:
            return None
        call = bound_call(job.captured.examples[0], lowered)
        started = time.monotonic()
        call()
        taken_s = time.monotonic() - started
    except AceError as error:
        if error.problem.code is ErrorCode.CANCELLED:
            raise
        return None
    except Exception:  # noqa: BLE001 - border: a runtime's own library may raise anything
        return None
    finally:
        job.reporter.tell(TargetAtWork(job=job.reporter.job))
    most_s = max(LONGEST_TIMING_S, SHARE * _seconds_so_far(job))
    return lowered if 2 * taken_s * job.recipe.measure.rounds <= most_s else None
