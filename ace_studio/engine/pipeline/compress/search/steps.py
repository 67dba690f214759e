"""What a search for a goal keeps of every plan that it evaluated, in the result and on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ace_studio.engine.environment import package_versions
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import misses, run_figures
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import Goal, ImproveMethod
from ace_studio.records.results import Baseline, RunStatus, SearchStep
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


def with_findings(step: SearchStep, candidate: Candidate, baseline: Baseline, goal: Goal) -> SearchStep:
    """The step with what became of its candidate."""
    run = candidate.run
    figures = run_figures(run, baseline)
    found = msgspec.structs.replace(
        step,
        status=run.status,
        metric=run.metric,
        metric_drop=run.metric_drop,
        sqnr_db=run.sqnr_db,
        size_bytes=run.size_bytes,
        latency_ratio=round(figures.latency_ratio, 4) if figures.latency_ratio else None,
    )
    if run.status is RunStatus.OK:
        missed = tuple(map(str, misses(figures, goal)))
    elif run.error is not None:
        missed = (f"could not be built: {run.error.what}",)
    else:
        missed = tuple(warning.what for warning in run.warnings) or (str(run.status),)
    return msgspec.structs.replace(found, misses=missed, meets=run.status is RunStatus.OK and not missed)
