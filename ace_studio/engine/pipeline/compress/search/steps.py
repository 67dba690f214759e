"""What a search for a goal keeps of every plan that it evaluated, in the result and on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ace_studio.engine.environment import package_versions
from ace_studio.engine.pipeline.compress.candidates import Candidate, goal_distance, goal_misses, latency_ratio
from ace_studio.engine.targets.base import Target
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, ImproveMethod, Objective
from ace_studio.records.results import Baseline, RunStatus, SearchStep, TargetRun
from ace_studio.records.safe_file import write_atomically

FILE_NAME = "search.json"


class SavedSearch(msgspec.Struct, kw_only=True):
    """Steps by the key of what was built; of one job only, and of one set of packages."""

    job: str
    versions: dict[str, str] = {}
    steps: dict[str, SearchStep] = {}


class StepStore:
    """The steps of one job in its output folder: a job that was cancelled does not build them again."""

    def __init__(self, folder: Path, job: str) -> None:
        self._path = folder / FILE_NAME
        self._saved = SavedSearch(job=job, versions=package_versions())
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=SavedSearch)
        except (OSError, msgspec.DecodeError):
            return
        if (found.job, found.versions) == (job, self._saved.versions):
            self._saved = found

    def find(self, key: str) -> SearchStep | None:
        """What an earlier run of the job found. What could not be built is tried again: memory, packages may differ."""
        step = self._saved.steps.get(key)
        if step is None or step.sqnr_db is None:
            return None
        return msgspec.structs.replace(step, reused=True, run=None)

    def keep(self, key: str, step: SearchStep) -> None:
        """Write a step down at once."""
        self._saved.steps[key] = step
        try:
            write_atomically(self._path, msgspec.json.format(msgspec.json.encode(self._saved), indent=1))
        except OSError:
            return


def step_key(target: Target, plan: Plan, methods: Sequence[ImproveMethod] = ()) -> str:
    """A text that is the same for the same plan, with weights improved alike, on the same version of a target."""
    content = f"{target.name} {target.available().version} {' '.join(methods)} ".encode()
    content += msgspec.json.encode(plan, order="deterministic")
    return hashlib.sha256(content).hexdigest()


def run_of(step: SearchStep) -> TargetRun:
    """The step as a run, for those who judge runs."""
    return TargetRun(
        target=step.target,
        status=RunStatus.OK,
        metric=step.metric,
        metric_drop=step.metric_drop,
        sqnr_db=step.sqnr_db,
        size_bytes=step.size_bytes,
        speedup=1.0 / step.latency_ratio if step.latency_ratio else None,
    )


def with_findings(step: SearchStep, candidate: Candidate, baseline: Baseline, goal: Goal) -> SearchStep:
    """The step with what became of its candidate."""
    run = candidate.run
    ratio = latency_ratio(run, baseline)
    found = msgspec.structs.replace(
        step,
        metric=run.metric,
        metric_drop=run.metric_drop,
        sqnr_db=run.sqnr_db,
        size_bytes=run.size_bytes,
        latency_ratio=round(ratio, 4) if ratio else None,
    )
    if run.status is RunStatus.OK:
        misses = tuple(goal_misses(run, baseline, goal))
    elif run.error is not None:
        misses = (f"could not be built: {run.error.what}",)
    else:
        misses = tuple(warning.what for warning in run.warnings) or (str(run.status),)
    return msgspec.structs.replace(found, misses=misses, meets=run.status is RunStatus.OK and not misses)


def is_accurate(step: SearchStep, baseline: Baseline, goal: Goal) -> bool:
    """Whether it was built and meets what the goal says of accuracy."""
    accuracy = Goal(max_drop=goal.max_drop, min_sqnr_db=goal.min_sqnr_db)
    return step.sqnr_db is not None and not goal_misses(run_of(step), baseline, accuracy)


def is_affordable(step: SearchStep, baseline: Baseline, goal: Goal) -> bool:
    """Whether it was built and meets what the goal says of size and time."""
    cost = Goal(max_size_mb=goal.max_size_mb, max_latency_ratio=goal.max_latency_ratio)
    return step.sqnr_db is not None and not goal_misses(run_of(step), baseline, cost)


def merit(step: SearchStep, goal: Goal) -> tuple[float, ...]:
    """What the goal wants least of, smallest first."""
    drop = step.metric_drop if step.metric_drop is not None else 0.0
    accuracy = (max(drop, 0.0), -(step.sqnr_db or 0.0))
    latency = step.latency_ratio or float("inf")
    size = float(step.size_bytes or 0) or float("inf")
    return {"latency": (latency, size), "size": (size, latency), "accuracy": (*accuracy, latency)}[str(goal.optimize)]


def nearest(steps: Sequence[SearchStep], baseline: Baseline, goal: Goal) -> SearchStep | None:
    """The best found where none meets the goal: nearest to the bounds that it misses, then the most accurate."""
    built = [step for step in steps if step.sqnr_db is not None]
    accurate = Goal(optimize=Objective.ACCURACY)
    return min(built, key=lambda one: (goal_distance(run_of(one), baseline, goal), *merit(one, accurate)), default=None)
