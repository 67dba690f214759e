"""A quick race against the fastest candidate so far: a clear loser is not evaluated, saved or verified.

Only where ``auto`` searches for the fastest plan: many candidates are built there, and the recipe names none of them.
"""

from __future__ import annotations

from ace_studio.engine import measure
from ace_studio.engine.pipeline.compress.candidates import Candidate, keeps_accuracy
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.timing import time_beside
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import Objective
from ace_studio.records.results import RunStatus, Warning

RACE_ROUNDS = 8
"""An even number: every second round has the opposite order."""
CLEARLY_SLOWER = 1.3
"""A candidate has lost if the low end of the 95 % interval of its time over the leader's is above this."""


def drop_if_lost(job: CompressionJob, candidate: Candidate) -> None:
    """Race a built candidate against the leader; a loser is dropped, with the figures in its run."""
    leader = _leader(job)
    if leader is None or not _is_race(job):
        return
    job.reporter.phase(Phase.MEASURE, f"{candidate.label} against {leader.label}")
    its, own = time_beside(job, leader.lowered, candidate, rounds=RACE_ROUNDS)
    times = measure.ratio_of(own, its)
    if times.low > CLEARLY_SLOWER:
        reason = f"{times.median:.1f} times slower than {leader.label}, which meets the goal (a quick race)"
        candidate.lowered = None
        candidate.note(
            status=RunStatus.DROPPED,
            latency_ms=own.latency(),
            warnings=(*candidate.run.warnings, Warning(code="dropped", what=reason)),
        )


def enter(job: CompressionJob, candidate: Candidate) -> None:
    """Make a candidate that keeps the accuracy the leader: it was not clearly slower than the last one."""
    if keeps_accuracy(candidate, job.state.baseline, job.recipe.goal):
        job.state.leader = candidate


def _leader(job: CompressionJob) -> Candidate | None:
    return job.state.leader if job.state.leader is not None and job.state.leader.lowered is not None else None


def _is_race(job: CompressionJob) -> bool:
    """Whether only speed decides among the accurate candidates."""
    recipe = job.recipe
    is_search = recipe.plan.from_goal and recipe.goal.has_bound and "auto" in recipe.targets.names
    return is_search and recipe.goal.optimize is Objective.LATENCY and recipe.goal.max_size_mb is None
