"""The result of a job: which candidate is best, whether it meets the goal, and what it misses."""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ace_studio.engine.advice import Facts
from ace_studio.engine.advice.speed_rules import expected_gain
from ace_studio.engine.environment import result_environment
from ace_studio.engine.evaluate import RUINED_DB
from ace_studio.engine.pipeline.compress.candidates import (
    Candidate,
    choose,
    original_target,
    pareto_points,
    prefer_exact,
    slower_words,
)
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.sensitivity import Sensing
from ace_studio.engine.targets.base import Lowered
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.goals import is_accurate, is_clearly_faster, misses, run_figures
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import Objective, Recipe
from ace_studio.records.results import Region, Result, ResultStatus, RunStatus, TargetRun
from ace_studio.records.results.words import ratio_words


@dataclass
class Outcome:
    """What a compression job leaves behind in this process."""

    result: Result
    chosen: Lowered | None
    """The chosen candidate's model."""


def conclude(job: CompressionJob) -> Outcome:
    """Choose among the runs and write the result."""
    _say_what_was_calibrated(job)
    chosen, goal_met = _choose(job, tuple(candidate.run for candidate in job.state.candidates))
    _say_what_does_not_pay(job, chosen)
    _say_what_data_would_bring(job, chosen)
    status, error = ResultStatus.OK, None
    if chosen is None:
        status, error = ResultStatus.FAILED, _nothing_worked(job.state.candidates)
    elif goal_met is False:
        status, error = ResultStatus.GOAL_NOT_MET, _goal_not_met(job, job.state.candidates[chosen])
    result = replace(unfinished(job), status=status, error=error, chosen=chosen, goal_met=goal_met)
    return Outcome(result=result, chosen=None if chosen is None else job.state.candidates[chosen].lowered)


def unfinished(job: CompressionJob) -> Result:
    """What was measured so far, without a choice: what is left if the process is killed before it concludes."""
    sensing = job.state.sensing or Sensing()
    runs = tuple(candidate.run for candidate in job.state.candidates)
    environment = result_environment(threads=job.threads, device=job.captured.device)
    environment["measured_input"] = job.captured.examples[0].size_words
    return Result(
        status=ResultStatus.FAILED,
        fingerprint=job_fingerprint(job.captured.fingerprint, job.recipe),
        environment=environment,
        capture=job.capture_report,
        baseline=job.state.baseline,
        runs=runs,
        sensitivity=sensing.in_db(),
        improvements=job.improvements.reports,
        search=tuple(job.state.search),
        front=tuple(job.state.front),
        regions=tuple(itertools.chain.from_iterable(job.state.regions.values())),
        pareto=pareto_points(runs, job.state.baseline),
        ceilings=job.state.ceilings,
        worst=job.state.worst,
        recipe=recipe_text(job.recipe) if job.loaded.files else "",
        folder=str(Path.cwd()) if job.loaded.files else "",
        warnings=tuple(job.reporter.warnings),
        error=_UNFINISHED,
    )


_UNFINISHED = Problem(
    code=ErrorCode.CRASH,
    what="The run has not come to its end",
    why="these figures were measured before the artifacts were written and verified; nothing was chosen",
    remedy="If it runs no more, run the recipe again",
)


def _choose(job: CompressionJob, runs: Sequence[TargetRun]) -> tuple[int | None, bool | None]:
    """The best run, but nothing inexact that is no faster where speed was wanted; the result says what is slow."""
    recipe, baseline = job.recipe, job.state.baseline
    chosen, goal_met = choose(runs, baseline, recipe.goal)
    if chosen is None:
        return chosen, goal_met
    why = ""
    if recipe.plan.from_goal and recipe.goal.has_bound and recipe.goal.optimize is Objective.LATENCY:
        original = original_target(job.loaded.frontend)
        chosen, why = prefer_exact(chosen, runs, baseline, recipe.goal, original=original)
        goal_met = not misses(run_figures(runs[chosen], baseline), recipe.goal)
    run = runs[chosen]
    if why:
        job.reporter.warn("not-faster", f"{run.target} {run.built_words} was chosen: {why}", where=run.target)
    is_told = bool(_float_words(job, run))  # as what does not pay
    if others := slower_words(run, than_float=not is_told and not run.is_exact):
        words = f"{run.target} {run.built_words} was chosen although it is slower than {others}"
        job.reporter.warn("slower", words, where=run.target)
    _say_what_is_ruined(job, run)
    return chosen, goal_met


def _say_what_was_calibrated(job: CompressionJob) -> None:
    """Warn of ranges that were not found on calibration data, if anything that was built has any."""
    how, told = job.state.calibrated_on, ""
    built = [one for one in job.state.alive if any(precision.needs_calibration for precision in one.plan.precisions)]
    if not how or not (job.recipe.improve.methods or any(not one.run.is_exact for one in built)):
        return
    judged = {one.run.fidelity: one for one in built if one.worst_kind and one.run.fidelity is not None}
    if judged:
        worst = judged[min(judged)]
        told = f"; {worst.label} has {min(judged):.1f} dB on {worst.worst_kind}, the worst of other made-up inputs"
    elif not job.state.has_data:
        told = "; accuracy on real data may be far lower"
    what = f"Activation ranges were found on {how}, because the recipe names no calibration data{told}"
    if job.state.has_data:
        job.reporter.warn("calibration-from-tracing", what, where="[calibration] inputs")
    else:
        job.reporter.warn("fake-calibration", what, where="[calibration] inputs")


def _say_what_data_would_bring(job: CompressionJob, chosen: int | None) -> None:
    """Without data a search leaves int8-static out: how fast that is elsewhere, beside what was reached."""
    if job.state.has_data or not (job.recipe.plan.from_goal and job.recipe.goal.has_bound):
        return
    static, gain = Precision.INT8_STATIC, 0.0
    facts = Facts(result=replace(unfinished(job), chosen=chosen), recipe=job.recipe, table=job.captured.table)
    if chosen is not None:
        able = {one.target.name for one in job.state.candidates if not one.target.precision_problem(static)}
        gain = max((expected_gain(facts, name, static) for name in able), default=0.0)
    told = f": by what other networks gain, {static} is then {gain:.1f} times as fast as now" if gain > 1 else ""
    job.reporter.warn(
        "no-data",
        f"Without data no ranges of activations are known, so {static} was not tried. Give 32 real examples{told}",
        where="[calibration] inputs",
    )


def _say_what_is_ruined(job: CompressionJob, run: TargetRun) -> None:
    """Without a goal and a metric nothing else tells a reader of the table that a fast run is of no use."""
    is_judged = run.metric is not None or job.recipe.goal.min_sqnr_db is not None
    if not is_judged and run.fidelity is not None and run.fidelity < RUINED_DB:
        job.reporter.warn(
            "far-from-original",
            f"The outputs of {run.target} {run.built_words} hardly resemble the original's: {run.fidelity:.1f} dB, so "
            f"the error is {10 ** (-run.fidelity / 20):.0%} of them",
            where=run.target,
        )


def _say_what_does_not_pay(job: CompressionJob, chosen: int | None) -> None:
    """Say of each target where low precisions are not worthwhile there, beginning with the chosen run's."""
    candidates = job.state.candidates
    first = [candidates[chosen]] if chosen is not None else []
    told = set()
    for one in [*first, *candidates]:
        if one.run.status is not RunStatus.OK or one.run.target in told:
            continue
        if words := _float_words(job, one.run) or _unpaid_words(job.state.regions.get(one.run.target, ()), one):
            told.add(one.run.target)
            job.reporter.warn("does-not-pay", f"{one.target.label}: {words}", where=one.run.target)


def _unpaid_words(regions: Sequence[Region], candidate: Candidate) -> str:
    """``int8-static does not pay here: 3 of 41 regions, kept at fp32``."""
    unpaid = [one for one in regions if not one.pays]
    if not unpaid:
        return ""
    lows = " or ".join(dict.fromkeys(choice.precision for one in unpaid for choice in one.choices[:-1]))
    exact = [one.choices[-1].precision for one in unpaid]
    planned = [str(candidate.plan.assigned.get(one.ops[0], Precision.FP32)) for one in unpaid]
    low = [own for own, high in zip(planned, exact, strict=True) if own != high]
    words = f"{lows} does not pay here: {len(unpaid)} of {len(regions)} regions"
    if not low:
        return f"{words}, kept at {' or '.join(dict.fromkeys(exact))}"
    kept = len(unpaid) - len(low)
    stay = f"{kept} kept at {exact[0]}, the other {len(low)}" if kept else "they"
    why = f"as {exact[0]} there saves no time of the model that can be measured"
    return f"{words}; {stay} stay at {' or '.join(dict.fromkeys(low))}, {why}"


def _float_words(job: CompressionJob, run: TargetRun) -> str:
    """Of a plan that the user gave: that the same runtime is as fast in float."""
    speed, low, high = run.float_speedup, run.float_speedup_low, run.float_speedup_high
    is_free = job.recipe.plan.from_goal or run.is_exact
    if is_free or speed is None or run.speed_undecided or is_clearly_faster(speed, low):
        return ""
    figures = ratio_words(run, "float_speedup")
    if (speed if high is None else high) < 1.0:
        return f"{run.built_words} does not pay here: fp32 there is faster, {figures}"
    return f"{run.built_words} may not pay here: it is not clearly faster than fp32 there, {figures}"


def _goal_not_met(job: CompressionJob, best: Candidate) -> Problem:
    figures = run_figures(best.run, job.state.baseline)
    missed = misses(figures, job.recipe.goal)
    closer = "prune the model" if is_accurate(figures, job.recipe.goal) else "keep sensitive modules at fp32 with rules"
    return Problem(
        code=ErrorCode.GOAL_NOT_MET,
        what="No candidate meets the goal",
        why=f"the best found is {best.label}: " + "; ".join((*map(str, missed), *_tried_words(job))),
        remedy=f"Relax the goal, {closer}, or add targets.",
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
    remedy = "Look at each run's reason; `ace-studio doctor` says which targets are installed."
    for one in candidates:
        if one.run.not_run and one.run.artifact:
            reasons.setdefault(one.run.not_run, []).append(one.label)
            remedy = (
                "Name a target that runs here too, such as eager. The artifacts that were not run are in the folder."
            )
        if (error := one.run.error) is not None:
            is_refusal = one.run.status is RunStatus.UNAVAILABLE and error.why
            reasons.setdefault(error.why if is_refusal else error.what, []).append(one.label)
            codes.add(error.code)
            remedy = error.remedy if error.code is ErrorCode.SYSTEM else remedy
    return Problem(
        code=codes.pop() if len(codes) == 1 else ErrorCode.UNSUPPORTED,
        what="No target gave a verified artifact",
        why="; ".join(_grouped(reasons)) or "no target is available here",
        remedy=remedy,
    )


def job_fingerprint(captured: str, recipe: Recipe) -> str:
    """A hash over the captured model and the recipe."""
    return hashlib.sha256(captured.encode() + msgspec.json.encode(recipe, order="deterministic")).hexdigest()
