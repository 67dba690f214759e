"""Mixtures of one target as plans: the integer program's choices become rules, builds and reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from ace_studio.engine.pipeline.compress.improving import Methods
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.profiling import find_ceilings
from ace_studio.engine.pipeline.compress.search.evaluation import PlanEvaluator
from ace_studio.engine.pipeline.compress.search.mixing import Chosen, Evaluation, Lesson, find_mixtures, front_of
from ace_studio.engine.pipeline.compress.search.mixture import Choice, DecisionGroup, Least, Limits, Mixture, Solution
from ace_studio.engine.pipeline.compress.search.prices import PricedBuild, make_mixture
from ace_studio.engine.pipeline.compress.search.simulated import Expectations, PlanSimulator
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant, goal_words
from ace_studio.engine.pipeline.compress.sensitivity import sense_once
from ace_studio.engine.quantize.fidelity import decibels
from ace_studio.engine.sensitivity import SIMULATED, noise_db
from ace_studio.records.goals import is_affordable, step_figures
from ace_studio.records.recipes.plan import FLOATS, PlanRule, Precision
from ace_studio.records.recipes.recipe import Goal, Objective
from ace_studio.records.results import FrontPoint, Region, RegionChoice, RunStatus, SearchStep

QUICK_S = 10.0
"""A build that took longer, with its check and its metric, is made only for speed."""


def make_mixer(
    job: CompressionJob,
    evaluator: PlanEvaluator,
    variants: Sequence[SearchVariant],
    highs: Sequence[Precision],
    *,
    methods: Methods = (),
) -> Mixer | None:
    """The mixer of some variants of a target and the precisions of what is not low; None if too little is known.

    Args:
        job: The job.
        evaluator: Has evaluated the variants, and all ops at each of ``highs``.
        variants: With the same precision of what is not planned.
        highs: What ops may stay at, the most exact last.
        methods: What improves the weights of the mixtures.
    """
    lows = {variant.plan.default for variant in variants}
    kinds = [*variants, *(evaluator.uniform_variant(variants[0].target, one) for one in highs if one not in lows)]
    found = [(variant, priced) for variant in kinds if (priced := evaluator.priced(variant)) is not None]
    if not highs or len(found) < 2 or found[-1][0].plan.default is not highs[-1]:
        return None
    builds = [build for _, (build, _) in found]
    low = sorted({one.precision for one in builds if one.precision in SIMULATED})
    find_ceilings(job)
    ceilings = job.state.ceilings
    mixture = make_mixture(
        job.captured.table,
        builds,
        sense_once(job, low).noise,
        seconds_per_byte=0.0 if ceilings is None else 1e-9 / ceilings.gbytes_per_s,
        baseline_ms=max((ms for _, (_, ms) in found), default=0.0),
    )
    unpaid = mixture.unpaid() if job.recipe.goal.optimize is Objective.LATENCY else ()
    target = variants[0].target.name
    job.state.regions.setdefault(target, tuple(_regions(target, mixture, unpaid)))
    simulator, goal = PlanSimulator(job), job.recipe.goal
    return Mixer(evaluator, simulator, mixture, variants, builds, goal=goal, methods=methods, unpaid=unpaid)


class Mixer:
    """Searches the mixtures of one target."""

    def __init__(
        self,
        evaluator: PlanEvaluator,
        simulator: PlanSimulator,
        mixture: Mixture,
        variants: Sequence[SearchVariant],
        builds: Sequence[PricedBuild],
        *,
        goal: Goal,
        methods: Methods,
        unpaid: Sequence[int] = (),
    ) -> None:
        self._evaluator = evaluator
        self._simulator = simulator
        self._unpaid = unpaid
        self._mixture = mixture
        self._variants = {variant.plan.default: variant for variant in variants}
        self._builds = builds
        self._goal = goal
        self._methods = methods
        self._expected = Expectations(self._simulated_db, (methods, ()))

    def search(
        self, least: Least, *, is_accurate: Callable[[SearchStep], bool], min_db: float | None
    ) -> list[FrontPoint]:
        """Evaluate what promises to meet the goal better than the builds with one precision.

        Returns the whole front, by what the builds taught.
        """
        if not self._mixture.groups:
            return []
        goal = self._goal
        limits = Limits(time=goal.max_latency_ratio, bytes=None if goal.max_size_mb is None else goal.max_size_mb * 1e6)

        def judged(step: SearchStep) -> Evaluation:
            return Evaluation(
                is_accurate=is_accurate(step),
                is_affordable=is_affordable(step_figures(step), goal),
                sqnr_db=step.fidelity,
                time=step.latency_ratio,
                bytes=step.size_bytes,
                ends=step.status is RunStatus.DROPPED,
            )

        def evaluate(solution: Solution) -> Evaluation:
            expected_db = None if least is Least.NOISE else self._expected.expected_db(solution.chosen)
            methods = self._methods if expected_db is None else self._expected.methods_for(solution.chosen)
            step = self._build(solution, methods, expected_db)
            if step is None or step.fidelity is None:
                return Evaluation(is_accurate=False, is_affordable=False, ends=True)
            if expected_db is not None:
                self._expected.learn(solution.chosen, methods, step.fidelity)
            return judged(step)

        steps = {one.precision: self._evaluator.step_of(self._variant(one.precision)) for one in self._builds}
        known = {self._mixture.uniform(one): judged(step) for one, step in steps.items() if step is not None}
        is_quick = all(step.seconds <= QUICK_S for step in steps.values() if step is not None)
        others = [one.step for one in self._evaluator.plans if one.step.meets and one.step not in steps.values()]
        if least is not Least.NOISE:
            self._learn_from_uniform()
        lesson = find_mixtures(
            self._mixture,
            known,
            evaluate,
            least=least,
            limits=limits,
            min_db=min_db,
            is_quick=is_quick,
            rival=min((judged(step).figure(least) for step in others), default=math.inf),
            expected_db=self._expected.expected_db,
        )
        wanted = Least.BYTES if least is Least.BYTES else Least.TIME
        return [self._point(solution, lesson) for solution in front_of(lesson.mixture, wanted)]

    def _point(self, solution: Solution, lesson: Lesson) -> FrontPoint:
        base, rules, of = self._ruled(solution.chosen)
        return FrontPoint(
            target=self._variants[base].target.name,
            low=self._variants[base].plan.label,
            high=_by_count(rules),
            kept_high=len(rules),
            of=of,
            predicted_db=round(decibels(1.0, solution.noise) + lesson.offset_db, 2) if solution.noise > 0.0 else None,
            predicted_ratio=round(solution.time * lesson.time, 4),
            predicted_bytes=round(solution.bytes * lesson.bytes),
            built=solution.chosen in lesson.built,
        )

    def _variant(self, precision: Precision) -> SearchVariant:
        own = self._variants.get(precision)
        target = next(iter(self._variants.values())).target
        return own if own is not None else self._evaluator.uniform_variant(target, precision)

    def _build(self, solution: Solution, methods: Methods, expected_db: float | None) -> SearchStep | None:
        """Evaluate a mixture as a plan: the precision of most arithmetic is its default, the others have rules."""
        base, rules, of = self._ruled(solution.chosen)
        step = SearchStep(
            target="",
            low="",
            high=_by_count(rules),
            kept_high=len(rules),
            of=of,
            rules=rules,
            predicted_db=round(decibels(1.0, solution.noise) if expected_db is None else expected_db, 2),
            predicted_ratio=round(solution.time, 4),
        )
        own = self._variants[base]
        variant = SearchVariant(own.target, own.plan, methods=methods)
        return self._evaluator.mixture(variant, step, self._reasons(solution))

    def _simulated_db(self, chosen: Chosen, methods: Methods) -> float | None:
        base, rules, _ = self._ruled(chosen)
        plan = self._variants[base].plan
        variant = SearchVariant(self._variants[base].target, plan, methods=methods)
        return self._simulator.fidelity_db(variant, msgspec.structs.replace(plan, rules=(*plan.rules, *rules)))

    def _learn_from_uniform(self) -> None:
        """What the builds with all ops at one precision say of the simulations, with improved weights and without."""
        for build in self._builds:
            own = self._variant(build.precision)
            for methods in {self._methods, ()}:
                step = self._evaluator.step_of(replace(own, methods=methods)) or self._with_other_rest(own, methods)
                if step is None and build.precision not in self._variants:
                    step = self._evaluator.step_of(own)  # with no op low, nothing is improved
                if step is not None and step.fidelity is not None:
                    self._expected.learn(self._mixture.uniform(build.precision), methods, step.fidelity)

    def _with_other_rest(self, own: SearchVariant, methods: Methods) -> SearchStep | None:
        """The step of a variant that differs in the float precision of the rest; it hardly changes the fidelity."""
        for rest in FLOATS:
            plan = msgspec.structs.replace(own.plan, rest=rest)
            if (step := self._evaluator.step_of(replace(own, plan=plan, methods=methods))) is not None:
                return step
        return None

    def _ruled(self, chosen: Chosen) -> tuple[Precision, tuple[PlanRule, ...], int]:
        """The variant that a mixture is, the rules for its other ops, and how many ops have a choice."""
        assigned = self._mixture.assigned(chosen)
        counts = Counter(one for one in assigned.values() if one in self._variants)
        base = counts.most_common(1)[0][0] if counts else next(iter(self._variants))
        rules = tuple(
            PlanRule(match=f"id:{op_id}", precision=precision)
            for op_id, precision in assigned.items()
            if precision is not base
        )
        return base, rules, len(assigned)

    def _reasons(self, solution: Solution) -> Mapping[str, str]:
        """Op id -> why it has its precision, for every op that had a choice."""
        unpaid = set(self._unpaid)
        return {
            op_id: _why(group, group.choices[own], goal=self._goal, pays=at not in unpaid)
            for at, (group, own) in enumerate(zip(self._mixture.groups, solution.chosen, strict=True))
            for op_id in group.op_ids
        }


def _by_count(rules: Iterable[PlanRule]) -> str:
    """The precisions of rules, the most frequent first."""
    return ", ".join(str(one) for one, _ in Counter(rule.precision for rule in rules).most_common())


def _regions(target: str, mixture: Mixture, unpaid: Sequence[int]) -> Iterable[Region]:
    """The groups that have a choice, for the report; ``unpaid`` are the indices of those where nothing low pays."""
    idle = set(unpaid)
    for at, group in enumerate(mixture.groups):
        if len(group.choices) > 1:
            exact = group.choices[group.exact]
            choices = (*(one for one in group.choices if one is not exact), exact)
            told = tuple(
                RegionChoice(
                    precision=str(one.precision),
                    latency_share=round(one.time, 6),
                    sqnr_db=round(noise_db(one.noise), 2) if one.noise > 0.0 else None,
                    size_bytes=round(one.bytes),
                )
                for one in choices
            )
            yield Region(target=target, ops=group.op_ids, choices=told, pays=at not in idle)


def _why(group: DecisionGroup, own: Choice, *, goal: Goal, pays: bool) -> str:
    """What the choice gains and costs beside the best or the most exact other one."""
    by_size = goal.optimize is Objective.SIZE
    least = Least.BYTES if by_size else Least.TIME
    together = f" (with {len(group.op_ids) - 1} more)" if len(group.op_ids) > 1 else ""
    best, exact = min(group.choices, key=lambda one: one.figure(least)), group.choices[group.exact]
    saved = _saved_words(exact.figure(least) - best.figure(least), by_size)
    if own is exact and (best is own or not pays):
        others = ", ".join(f"{one.precision} {one.time:.2%}" for one in group.choices if one is not own)
        word = "the fastest here" if best is own else "as fast here, with what conversions cost"
        return f"{own.precision} is {word}: {own.time:.2%} of the original's latency, {others}{together}"
    if own is exact:
        lost = f"alone {noise_db(best.noise):.1f} dB; the goal {goal_words(goal)}"
        return f"kept at {own.precision}: {best.precision} would save {saved}, {lost}{together}"
    alone = f"alone {noise_db(own.noise):.1f} dB{together}"
    gained = exact.figure(least) - own.figure(least)
    if gained < 0.0:
        return f"{own.precision} spares conversions, which cost more than {exact.precision} gains here, {alone}"
    return f"{own.precision} saves {_saved_words(gained, by_size)} against {exact.precision}, {alone}"


def _saved_words(saved: float, by_size: bool) -> str:
    return f"{saved / 1e3:.1f} kB" if by_size else f"{saved:.2%} of the original's latency"
