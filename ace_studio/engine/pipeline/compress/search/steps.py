"""The steps of a search: one for every plan that was evaluated, in the result and on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ace_studio.engine.environment import package_versions
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import latency_ratio, misses, step_figures
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, ImproveMethod
from ace_studio.records.results import Baseline, RunStatus, SearchStep
from ace_studio.records.safe_file import write_atomically

FILE_NAME = "search.json"


class SavedSearch(msgspec.Struct, kw_only=True):
    """The steps of one job with one set of package versions, by `step_key`."""

    job: str
    versions: dict[str, str] = {}
    steps: dict[str, SearchStep] = {}


class StepStore:
    """The steps of one job in its output folder, so that a cancelled job does not build them again."""

    def __init__(self, folder: Path, job: str) -> None:
        self._path = folder / FILE_NAME
        self._saved = SavedSearch(job=job, versions=package_versions())
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=SavedSearch)
        except (OSError, msgspec.DecodeError):
            return
        if (stored.job, stored.versions) == (job, self._saved.versions):
            self._saved = stored

    def find(self, key: str) -> SearchStep | None:
        """The step of an earlier run of the job. A failed build is not one: memory or packages may differ now."""
        step = self._saved.steps.get(key)
        if step is None or step.sqnr_db is None:
            return None
        return msgspec.structs.replace(step, reused=True, run=None)

    def keep(self, key: str, step: SearchStep) -> None:
        """Write a step to disk at once; a folder that cannot be written to is ignored."""
        self._saved.steps[key] = step
        try:
            write_atomically(self._path, msgspec.json.format(msgspec.json.encode(self._saved), indent=1))
        except OSError:
            return


def step_key(target: Target, plan: Plan, methods: Sequence[ImproveMethod] = ()) -> str:
    """A hash over the target, its version, the plan and the methods that improve the weights."""
    content = f"{target.name} {target.available().version} {' '.join(methods)} ".encode()
    content += msgspec.json.encode(plan, order="deterministic")
    return hashlib.sha256(content).hexdigest()


def with_findings(step: SearchStep, candidate: Candidate, baseline: Baseline, goal: Goal) -> SearchStep:
    """The step with the figures of its candidate and what it misses."""
    run = candidate.run
    ratio = latency_ratio(run, baseline)
    step = msgspec.structs.replace(
        step,
        status=run.status,
        metric=run.metric,
        metric_drop=run.metric_drop,
        sqnr_db=run.sqnr_db,
        size_bytes=run.size_bytes,
        latency_ratio=round(ratio, 4) if ratio else None,
    )
    if run.status is RunStatus.OK:
        missed = tuple(map(str, misses(step_figures(step), goal)))
    elif run.error is not None:
        missed = (f"could not be built: {run.error.what}",)
    else:
        missed = tuple(warning.what for warning in run.warnings) or (str(run.status),)
    return msgspec.structs.replace(step, misses=missed, meets=run.status is RunStatus.OK and not missed)
