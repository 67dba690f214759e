"""The search for a goal: on every target, which ops must stay high, found by building few candidates.

A variant is a low precision on a target, with the ops ranked by sensitivity: candidate k keeps the k most sensitive ops
high. Every candidate is really built, compared with eager, evaluated and timed; `bisection` says which k is next.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from ace_studio.engine import export, measure
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.choosing import job_fingerprint
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search import Point, fewest_high, most_high
from ace_studio.engine.pipeline.compress.search.rankings import ranking_of, reasons_to_stay
from ace_studio.engine.pipeline.compress.search.steps import StepStore, step_key, with_findings
from ace_studio.engine.pipeline.compress.search.variants import METHODS_TO_TRY, SearchVariant, variants_of
from ace_studio.engine.pipeline.compress.timing import time_beside
from ace_studio.engine.pipeline.compress.trying import expect_builds, try_plan
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import cost, is_accurate, is_affordable, rank, step_figures
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan, PlanRule, Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Objective
from ace_studio.records.results import RunStatus, SearchStep, Warning

QUICK_ROUNDS = 8
"""An even number: every second round has the opposite order."""
MOST_KEPT = 3
LEVEL = 1.25
"""What meets the goal and is within this factor of the best is measured, saved and verified too, on every target."""
CLEARLY_BEHIND = 0.95
"""A variant is searched only if its cheapest candidate costs at most this share of what meets the goal already."""
FLOATS = (Precision.BF16, Precision.FP32)
"""What ops that stay high run at: the first that the target has, that is accurate enough, and faster than eager."""


@dataclass
class _Tried:
    step: SearchStep
    plan: Plan
    methods: tuple[ImproveMethod, ...]
    candidate: Candidate | None


class GoalSearch:
    """One search over all targets. What it finds is in the job: candidates, steps, and why nothing more is had."""

    def __init__(self, job: CompressionJob) -> None:
        self._job = job
        self._goal = job.recipe.goal
        self._store = StepStore(job.output, job_fingerprint(job.captured.fingerprint, job.recipe))
        self._tried: dict[str, _Tried] = {}
        self._asked: list[Candidate] = []
        """What the recipe itself plans: the search begins with it and leaves it alone."""

    def run(self, targets: Sequence[Target]) -> None:
        """Search on all targets: rankings are climbed in the order of what they promise, so that few need to be."""
        if self._goal.optimize is Objective.ACCURACY:
            for target in targets:
                self._most_accurate(target, variants_of(self._job, target))
        else:
            self._cheapest(targets)
        for target in targets:
            self._say_what_is_too_much(target)
            self._leave_only_the_best(target)

    # --- the two ways to look at a goal ---

    def _cheapest(self, targets: Sequence[Target]) -> None:
        """The fewest ops high that are accurate enough, for every variant that can still win."""
        firsts: list[tuple[SearchVariant, SearchStep]] = []
        variants = [variant for target in targets for variant in variants_of(self._job, target)]
        expect_builds(
            self._job, [(variant.target, variant.plan) for variant in variants if not self._is_known(variant)]
        )
        for variant in variants:
            first = self._evaluate(variant, 0)
            if first is not None and first.sqnr_db is not None:
                firsts.append((variant, first))
        missing = [(variant, first) for variant, first in firsts if not self._is_accurate(first)]
        for variant, first in sorted(missing, key=lambda pair: self._cost(pair[1])):
            if reason := self._hopeless(first):
                self._note(f"{variant.name}: {reason}")
            elif not self._is_float_inaccurate(variant.target):
                self._climb(self._with_better_weights(variant, first))
        for target in targets:
            own = [first for variant, first in firsts if variant.target is target]
            if not any(self._meets(one.step) for one in self._of(target)) and not self._is_outrun(own):
                self._try_floats(target)

    def _with_better_weights(self, variant: SearchVariant, first: SearchStep) -> SearchVariant:
        """The variant with improved weights, if it is more accurate so; they cost no time, ops that stay high do."""
        improve = self._job.recipe.improve
        wanted = METHODS_TO_TRY.get(variant.plan.default, ()) if improve.by_search and not improve.methods else ()
        helpful = self._job.improvements.methods_that_help(variant.plan, wanted) if wanted else ()
        if not helpful:
            return variant
        better = SearchVariant(variant.target, variant.plan, methods=wanted)
        step = self._evaluate(better, 0)
        if step is None or step.sqnr_db is None or _inaccuracy(step) >= _inaccuracy(first):
            return variant
        return better

    def _climb(self, variant: SearchVariant) -> None:
        if self._is_met_by_first(variant) or not self._choose_high(variant):
            return  # not even all high is accurate enough on this target
        if (
            fewest_high(ranking_of(self._job, variant), partial(self._point, variant), wanted_db=self._wanted_db)
            is None
        ):
            self._note(f"{variant.name}: no step of its ranking is accurate enough")

    def _is_met_by_first(self, variant: SearchVariant) -> bool:
        first = self._evaluate(variant, 0)
        return first is not None and self._is_accurate(first)

    def _is_outrun(self, firsts: Sequence[SearchStep]) -> bool:
        """Whether something meets the goal that is better than what a target has with all ops low."""
        best = self._best_met()
        if best is None or not firsts:
            return False
        return min(self._cost(first) for first in firsts)[0] > self._cost(best)[0]

    def _best_met(self) -> SearchStep | None:
        met = [one.step for one in self._tried.values() if self._meets(one.step)]
        return min(met, key=self._cost, default=None)

    def _most_accurate(self, target: Target, variants: Sequence[SearchVariant]) -> None:
        """The most accurate that is small and fast enough: fp32 if that is, else as many ops high as fit."""
        floats = self._try_floats(target, all_of_them=True)
        if any(self._meets(step) for step in floats):
            return
        for variant in variants:
            first = self._evaluate(variant, 0)
            if first is None or first.sqnr_db is None:
                continue
            if not is_affordable(step_figures(first), self._goal):
                self._note(f"{variant.name}: even all low, " + "; ".join(first.misses))
            elif self._choose_high(variant, is_accuracy_asked=False):
                better = self._with_better_weights(variant, first)
                better.high = variant.high
                most_high(ranking_of(self._job, better), partial(self._point, better))

    def _try_floats(self, target: Target, *, all_of_them: bool = False) -> list[SearchStep]:
        """All ops at 16 bits, then at fp32; the second only if the first misses the goal."""
        found: list[SearchStep] = []
        for precision in FLOATS:
            if target.available().ok and target.precision_problem(precision):
                continue
            step = self._evaluate_plan(target, self._whole(precision))
            if step is not None:
                found.append(step)
                if self._meets(step) and not all_of_them:
                    break
        if found and not any(self._is_accurate(step) for step in found):
            self._note(f"{target.name}: even all ops at fp32 miss it: " + "; ".join(found[-1].misses))
        return found

    def _is_float_inaccurate(self, target: Target) -> bool:
        """Whether fp32 throughout was built there and is not accurate enough."""
        tried = self._tried.get(step_key(target, self._whole(Precision.FP32)))
        return tried is not None and not self._is_accurate(tried.step)

    def _say_what_is_too_much(self, target: Target) -> None:
        """The smallest and the fastest that the target has, if these are not small and fast enough."""
        built = [one.step for one in self._of(target) if one.step.sqnr_db is not None]
        sizes = [(step.size_bytes / 1e6, step.low) for step in built if step.size_bytes]
        ratios = [(step.latency_ratio, step.low) for step in built if step.latency_ratio]
        for bound, found, words in (
            (self._goal.max_size_mb, sizes, "the smallest of {} plans, {}, has {:.3g} MB"),
            (self._goal.max_latency_ratio, ratios, "the fastest of {} plans, {}, takes {:.3g} of the baseline's time"),
        ):
            if bound is not None and found and min(found)[0] > bound:
                value, low = min(found)
                self._note(f"{target.name}: " + words.format(len(built), low, value))

    def _choose_high(self, variant: SearchVariant, *, is_accuracy_asked: bool = True) -> bool:
        """Find what kept ops run at; False if nothing is accurate enough."""
        if self._goal.optimize is Objective.SIZE and variant.plan.default is Precision.INT4_WEIGHT:
            whole = self._evaluate_plan(variant.target, self._whole(Precision.INT8_WEIGHT))
            if whole is not None and self._is_accurate(whole):
                variant.high = Precision.INT8_WEIGHT
                return True
        variant.high = Precision.FP32
        if not variant.target.precision_problem(Precision.BF16):
            whole = self._evaluate_plan(variant.target, self._whole(Precision.BF16))
            is_fast = whole is not None and whole.latency_ratio is not None and whole.latency_ratio < 1.0
            if whole is not None and is_fast and (self._is_accurate(whole) or not is_accuracy_asked):
                variant.high = Precision.BF16
                return True
        if self._wanted_db is not None and self._wanted_db > self._beyond_doubt_db:
            whole = self._evaluate_plan(variant.target, self._whole(Precision.FP32))
            return whole is None or self._is_accurate(whole)
        return True

    _beyond_doubt_db = 60.0
    """Fidelity that fp32 has on every runtime; above it, fp32 is tried before ops are kept at it."""

    def _hopeless(self, first: SearchStep) -> str:
        """Why no step of a ranking whose first one is this can win; empty if one can."""
        if not is_affordable(step_figures(first), self._goal):
            return "even all low it is too large or too slow, and keeping ops high only adds to that"
        best = self._best_met()
        if best is not None and self._cost(first)[0] > CLEARLY_BEHIND * self._cost(best)[0]:
            return f"even all low it is no better than {best.target} {best.low}, which meets the goal"
        return ""

    # --- one step ---

    def _point(self, variant: SearchVariant, count: int) -> Point:
        step = self._evaluate(variant, count)
        if step is None or step.sqnr_db is None:
            return Point(keeps=False, affords=False, ends=True)
        return Point(
            keeps=self._is_accurate(step),
            affords=is_affordable(step_figures(step), self._goal),
            sqnr_db=step.sqnr_db,
            ends=step.status is RunStatus.DROPPED,
        )

    def _evaluate(self, variant: SearchVariant, count: int) -> SearchStep | None:
        """The step of a variant; None if the target cannot do the variant at all."""
        if count == 0:
            return self._evaluate_plan(variant.target, variant.plan, of=variant)
        ranking = ranking_of(self._job, variant)
        if count == len(ranking):
            return self._evaluate_plan(variant.target, self._whole(variant.high))
        rules = tuple(PlanRule(match=f"id:{op.op_id}", precision=variant.high) for op in ranking.kept(count))
        plan = msgspec.structs.replace(variant.plan, rules=(*variant.plan.rules, *rules))
        return self._evaluate_plan(variant.target, plan, of=variant, rules=rules)

    def _evaluate_plan(
        self, target: Target, plan: Plan, *, of: SearchVariant | None = None, rules: tuple[PlanRule, ...] = ()
    ) -> SearchStep | None:
        methods = of.methods if of is not None else self._job.recipe.improve.methods
        key = step_key(target, plan, methods)
        if key in self._tried:
            return self._tried[key].step
        if (reused := self._store.find(key)) is not None:
            self._tried[key] = _Tried(reused, plan, methods, None)
            self._job.state.search.append(reused)
            return reused
        started = time.monotonic()
        ranking = ranking_of(self._job, of) if of is not None and rules else None
        step = SearchStep(
            target=target.name,
            low=plan.label,
            high=str(of.high) if of is not None and rules else "",
            kept_high=len(rules),
            of=len(ranking) if ranking is not None else 0,
            rules=rules,
            improved=self._methods_in(of),
            predicted_db=round(ranking.predicted_db(len(rules)), 2) if ranking is not None else None,
        )
        candidate = self._build(target, plan, of, rules)
        if candidate.run.status is RunStatus.UNAVAILABLE:
            return None
        step = with_findings(step, candidate, self._job.state.baseline, self._goal)
        run = self._job.state.candidates.index(candidate)
        step = msgspec.structs.replace(step, seconds=round(time.monotonic() - started, 3), run=run)
        self._tried[key] = _Tried(step, plan, methods, candidate)
        self._job.state.search.append(step)
        self._store.keep(key, step)
        return step

    def _is_known(self, variant: SearchVariant) -> bool:
        """Whether its first step was built or read before."""
        key = step_key(variant.target, variant.plan, variant.methods)
        return key in self._tried or self._store.find(key) is not None

    def _methods_in(self, variant: SearchVariant | None) -> tuple[str, ...]:
        if variant is None or not variant.methods or self._job.recipe.improve.methods:
            return ()
        return tuple(map(str, self._job.improvements.methods_that_help(variant.plan, variant.methods)))

    def _build(self, target: Target, plan: Plan, of: SearchVariant | None, rules: Sequence[PlanRule]) -> Candidate:
        methods = of.methods if of is not None else self._job.recipe.improve.methods
        asked = [
            one
            for one in self._job.state.candidates
            if one.target is target and one.plan.plan == plan and one.methods == methods
        ]
        candidate = asked[0] if asked else try_plan(self._job, target, plan, methods=methods)
        self._asked.extend(asked)
        if of is not None and rules:
            candidate.kept = reasons_to_stay(self._job, of, len(rules))
        if candidate.lowered is not None:
            self._job.guarded(candidate, _time_quickly)
        if candidate.lowered is not None:
            self._job.guarded(candidate, _weigh)
        return candidate

    def _whole(self, precision: Precision) -> Plan:
        return msgspec.structs.replace(self._job.recipe.plan, default=precision, rules=(), from_goal=False)

    # --- what stays ---

    def _leave_only_the_best(self, target: Target) -> None:
        """Keep what meets the goal and is about the best, or else what comes nearest; drop the others."""
        tried = self._of(target)
        meeting = sorted((one for one in tried if self._meets(one.step)), key=lambda one: self._cost(one.step))
        best = [one for one in meeting if self._is_level(one, meeting[0])][:MOST_KEPT]
        built = [one for one in tried if one.step.sqnr_db is not None]
        if built and not best:
            best = [min(built, key=lambda one: rank(step_figures(one.step), self._goal))]
        for one in best:
            if one.candidate is None:  # found by an earlier run of this job, and not built in this one
                one.candidate = self._build_again(target, one)
        for one in tried:
            candidate = one.candidate
            if candidate is None or candidate.lowered is None or candidate in self._asked:
                continue
            if not any(one is kept for kept in best):
                self._retire(candidate, best[0].step)

    def _is_level(self, one: _Tried, best: _Tried) -> bool:
        """Whether a few rounds cannot say that the one is worse than the best."""
        if self._cost(one.step)[0] <= LEVEL * self._cost(best.step)[0]:
            return True
        if self._goal.optimize is not Objective.LATENCY or one.candidate is None or best.candidate is None:
            return False
        fastest, slowest = one.candidate.run.speedup_high, best.candidate.run.speedup_low
        return fastest is not None and slowest is not None and fastest >= slowest

    def _build_again(self, target: Target, one: _Tried) -> Candidate:
        rules = one.plan.rules[: len(one.plan.rules) - one.step.kept_high]
        variant = SearchVariant(target, msgspec.structs.replace(one.plan, rules=rules), methods=one.methods)
        if one.step.rules:
            variant.high = one.step.rules[0].precision
        candidate = self._build(target, one.plan, variant, one.step.rules)
        if candidate in self._job.state.candidates:
            place = self._job.state.search.index(one.step)
            one.step = msgspec.structs.replace(one.step, run=self._job.state.candidates.index(candidate))
            self._job.state.search[place] = one.step
        return candidate

    def _retire(self, candidate: Candidate, best: SearchStep) -> None:
        shutil.rmtree(self._job.folder_of(candidate), ignore_errors=True)
        candidate.lowered = None
        kept = f", {best.kept_high} ops high," if best.kept_high else ""
        reason = f"a step of the search: {best.target} {best.low}{kept} is better"
        warnings = (*candidate.run.warnings, Warning(code="dropped", what=reason))
        candidate.note(status=RunStatus.DROPPED, warnings=warnings)
        self._job.tell(candidate)

    # --- small questions ---

    @property
    def _wanted_db(self) -> float | None:
        return self._goal.min_sqnr_db if self._goal.max_drop is None else None

    def _of(self, target: Target) -> list[_Tried]:
        return [one for one in self._tried.values() if one.step.target == target.name]

    def _is_accurate(self, step: SearchStep) -> bool:
        return step.sqnr_db is not None and is_accurate(step_figures(step), self._goal)

    def _cost(self, step: SearchStep) -> tuple[float, ...]:
        """What the goal optimizes comes first; less is better."""
        return cost(step_figures(step), self._goal.optimize)

    def _meets(self, step: SearchStep) -> bool:
        return step.meets

    def _note(self, text: str) -> None:
        if text not in self._job.state.search_notes:
            self._job.state.search_notes.append(text)


def _inaccuracy(step: SearchStep) -> tuple[float, ...]:
    return cost(step_figures(step), Objective.ACCURACY)[:2]


def _time_quickly(job: CompressionJob, candidate: Candidate) -> None:
    """A few rounds against the baseline: enough to choose what to build next, not to report."""
    job.reporter.phase(Phase.MEASURE, f"{candidate.label}, quickly")
    base, own = time_beside(job, job.reference, candidate, rounds=QUICK_ROUNDS)
    ratio = measure.ratio_of(base, own)
    candidate.note(
        latency_ms=own.latency(),
        speedup=base.latency().p10 / own.latency().p10,  # the quiet rounds: few of them say more than few medians
        speedup_low=ratio.low,
        speedup_high=ratio.high,
    )


def _weigh(job: CompressionJob, candidate: Candidate) -> None:
    assert candidate.lowered is not None
    path = candidate.lowered.save(job.folder_of(candidate))
    candidate.note(size_bytes=export.artifact_bytes(path))
