"""The steps of searches on disk: what was evaluated is known to every later job whose figures would be the same.

They are kept in the output folder, and beside the captures in the user's cache folder. What a plan gives does not
depend on the goal, so a job with another goal takes the figures and judges them by its own.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from torch import nn

from ace_studio.engine.capture.cache_key import content_digest
from ace_studio.engine.environment import package_versions, processor_name
from ace_studio.engine.own_code import own_code
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.sensitivity import scan_folder
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import latency_ratio, misses, step_figures
from ace_studio.records.recipes.plan import Plan
from ace_studio.records.recipes.recipe import AdviceOrigin, Goal, ImproveMethod, LimitsChoice, SensitivityChoice
from ace_studio.records.results import Baseline, RunStatus, SearchStep
from ace_studio.records.safe_file import read_or_none, write_atomically

FILE_NAME = "search.json"
MOST_KEPT = 100
"""Files of searches in the user's cache folder; the least recently written ones are removed."""


class BuildTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime's own counters said about the time of the ops of one build."""

    op_ms: dict[str, float] = {}
    """Op id -> time of its kernel, ms."""
    homes: dict[str, str] = {}
    """Op id -> the op whose kernel computes it too."""
    baseline_ms: float = 0.0
    """Latency of the baseline when the build was timed."""


class SavedSearch(msgspec.Struct, kw_only=True):
    """Steps found with one set of package versions, by `step_key`, and the times of those that were priced."""

    job: str
    """What `evaluation_key` gave."""
    versions: dict[str, str] = {}
    steps: dict[str, SearchStep] = {}
    times: dict[str, BuildTimes] = {}


def evaluation_key(job: CompressionJob) -> str:
    """A hash over all that the figures of a plan depend on: model, data, how it is measured and improved, machine.

    The goal is not part of it, nor what says in which order plans are tried; the plan is part of `step_key`.
    """
    recipe = msgspec.structs.replace(
        job.recipe,
        goal=Goal(),
        plan=Plan(),
        sensitivity=SensitivityChoice(),
        limits=LimitsChoice(),
        advice_from=AdviceOrigin(),
    )
    has_data = job.loaded.data.calibration is not None
    examples = [*job.captured.examples, *(job.calibration() if has_data else ())]
    parts = (
        job.captured.fingerprint,
        msgspec.json.encode(recipe, order="deterministic").decode(),
        content_digest(nn.Module(), examples),
        repr(job.state.baseline.metric),
        f"{job.captured.device} {processor_name()} {job.threads}",
        own_code(),
    )
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


class StepStore:
    """The steps of a search, so that neither a cancelled job nor one with another goal builds them again."""

    def __init__(self, output: Path, job: str, *, goal: Goal) -> None:
        self._goal = goal
        self._paths = [output / FILE_NAME]
        cache = scan_folder(None)
        if cache is not None:
            self._paths.append(cache / f"{job}.{FILE_NAME}")
        self._saved = SavedSearch(job=job, versions=package_versions())
        for path in self._paths:
            stored = read_or_none(path, SavedSearch)
            if stored is not None and (stored.job, stored.versions) == (job, self._saved.versions):
                self._saved.steps = {**stored.steps, **self._saved.steps}
                self._saved.times = {**stored.times, **self._saved.times}

    def find(self, key: str) -> SearchStep | None:
        """The step of an earlier job, judged by this goal.

        A failed build is not one: memory or packages may differ now. One that lost a race against what met another goal
        has no metric, and is not one either.
        """
        step = self._saved.steps.get(key) or self._saved.steps.get(self._raced(key))
        if step is None or step.fidelity is None:
            return None
        return judged(msgspec.structs.replace(step, reused=True, run=None), self._goal)

    def keep(self, key: str, step: SearchStep) -> None:
        """Write a step to disk at once; a folder that cannot be written to is ignored."""
        if step.status is RunStatus.DROPPED:
            self._saved.steps.pop(key, None)
            key = self._raced(key)
        self._saved.steps[key] = step
        self._write()

    def times(self, key: str) -> BuildTimes | None:
        """The times of the ops of a build of this or an earlier job."""
        return self._saved.times.get(key)

    def keep_times(self, key: str, times: BuildTimes) -> None:
        """Write the times of a build to disk at once, likewise."""
        self._saved.times[key] = times
        self._write()

    def _raced(self, key: str) -> str:
        return f"{key} {hashlib.sha256(msgspec.json.encode(self._goal)).hexdigest()[:16]}"

    def _write(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self._saved), indent=1)
        for path in self._paths:
            with suppress(OSError):
                write_atomically(path, content)
        for folder in {path.parent for path in self._paths[1:]}:
            with suppress(OSError):  # another process removes them too
                found = sorted(folder.glob(f"*.{FILE_NAME}"), key=lambda path: path.stat().st_mtime_ns)
                for path in found[:-MOST_KEPT]:
                    path.unlink(missing_ok=True)


def step_key(target: Target, plan: Plan, methods: Sequence[ImproveMethod] = (), options: Mapping[str, str] = {}) -> str:
    """A hash over the target, its version and options, the plan and the methods that improve the weights."""
    content = f"centred {target.name} {target.available().version} {' '.join(methods)} ".encode()
    content += msgspec.json.encode(options, order="deterministic")
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
        fidelity_db=run.fidelity_db,
        size_bytes=run.size_bytes,
        latency_ratio=round(ratio, 4) if ratio else None,
    )
    if run.error is not None:
        step = msgspec.structs.replace(step, misses=(f"could not be built: {run.error.what}",))
    elif run.status is not RunStatus.OK:
        step = msgspec.structs.replace(step, misses=tuple(one.what for one in run.warnings) or (str(run.status),))
    return judged(step, goal)


def judged(step: SearchStep, goal: Goal) -> SearchStep:
    """The step with what it misses of a goal; one that did not end well keeps what it says of that."""
    if step.status is not RunStatus.OK:
        return msgspec.structs.replace(step, meets=False)
    missed = tuple(map(str, misses(step_figures(step), goal)))
    return msgspec.structs.replace(step, misses=missed, meets=not missed)
