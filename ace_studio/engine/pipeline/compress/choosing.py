"""The result of a job: which candidate is best, whether it meets the goal, and what it misses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ace_studio.engine.environment import result_environment
from ace_studio.engine.pipeline.compress.candidates import Candidate, choose, pareto_points
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.sensitivity import Sensing
from ace_studio.engine.targets.base import Lowered
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.goals import misses, run_figures
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result, ResultStatus, RunStatus


@dataclass
class Outcome:
    """What a compression job leaves behind in this process."""

    result: Result
    chosen: Lowered | None
    """The chosen candidate's model."""


def conclude(job: CompressionJob) -> Outcome:
    """Choose among the runs and write the result."""
    runs = tuple(candidate.run for candidate in job.state.candidates)
    chosen, goal_met = choose(runs, job.state.baseline, job.recipe.goal)
    status, error = ResultStatus.OK, None
    sensing = job.state.sensing or Sensing()
    if chosen is None:
        status, error = ResultStatus.FAILED, _nothing_worked(job.state.candidates)
    elif goal_met is False:
        status, error = ResultStatus.GOAL_NOT_MET, _goal_not_met(job, job.state.candidates[chosen])
    example = job.captured.examples[0]
    environment = result_environment(threads=job.threads, device=job.captured.device)
    environment["measured_input"] = ", ".join("x".join(map(str, leaf.shape)) or "scalar" for leaf in example.tensors())
    result = Result(
        status=status,
        fingerprint=job_fingerprint(job.captured.fingerprint, job.recipe),
        environment=environment,
        capture=job.capture_report,
        baseline=job.state.baseline,
        runs=runs,
        chosen=chosen,
        goal_met=goal_met,
        sensitivity=sensing.in_db(),
        improvements=job.improvements.reports,
        search=tuple(job.state.search),
        pareto=pareto_points(runs, job.state.baseline),
        ceilings=job.state.ceilings,
        worst=job.state.worst,
        warnings=tuple(job.reporter.warnings),
        error=error,
    )
    return Outcome(result=result, chosen=None if chosen is None else job.state.candidates[chosen].lowered)


def _goal_not_met(job: CompressionJob, best: Candidate) -> Problem:
    missed = misses(run_figures(best.run, job.state.baseline), job.recipe.goal)
    return Problem(
        code=ErrorCode.GOAL_NOT_MET,
        what="No candidate meets the goal",
        why=f"the best found is {best.label}: " + "; ".join((*map(str, missed), *_tried_words(job))),
        remedy="Relax the goal, keep sensitive modules at fp32 with rules, or add targets.",
        where="[goal]",
    )


def _tried_words(job: CompressionJob) -> list[str]:
    """How many plans the search evaluated, and why it stopped."""
    if not job.state.search:
        return []
    targets = ", ".join(dict.fromkeys(step.target for step in job.state.search))
    return [f"{len(job.state.search)} plans were evaluated on {targets}", *_grouped(job.state.search_notes)]


def _grouped(reasons: Mapping[str, Sequence[str]]) -> list[str]:
    """One sentence per reason, with the names of all that share it."""
    return [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]


def _nothing_worked(candidates: Sequence[Candidate]) -> Problem:
    """One problem for all failed candidates."""
    reasons: dict[str, list[str]] = {}
    codes: set[ErrorCode] = set()
    for one in candidates:
        if (error := one.run.error) is not None:
            is_refusal = one.run.status is RunStatus.UNAVAILABLE and error.why
            reasons.setdefault(error.why if is_refusal else error.what, []).append(one.label)
            codes.add(error.code)
    return Problem(
        code=codes.pop() if len(codes) == 1 else ErrorCode.UNSUPPORTED,
        what="No target gave a verified artifact",
        why="; ".join(_grouped(reasons)) or "no target is available here",
        remedy="Look at each run's reason; `ace-studio doctor` says which targets are installed.",
    )


def job_fingerprint(captured: str, recipe: Recipe) -> str:
    """A hash over the captured model and the recipe."""
    return hashlib.sha256(captured.encode() + msgspec.json.encode(recipe, order="deterministic")).hexdigest()
