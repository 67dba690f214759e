"""The search for a goal: which precision each op gets on each target, found by building few candidates.

A variant is a low precision on a target. All variants are built first; what their builds show of the time of every op
is what the integer program in `mixture` mixes them by. Every candidate is compared with eager, evaluated and timed.
"""

from collections.abc import Sequence

from ace_studio.engine.pipeline.compress.building import expect_builds
from ace_studio.engine.pipeline.compress.candidates import original_target
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.search.evaluation import EvaluatedPlan, PlanEvaluator
from ace_studio.engine.pipeline.compress.search.mixer import make_mixer
from ace_studio.engine.pipeline.compress.search.mixture import Least
from ace_studio.engine.pipeline.compress.search.variants import METHODS_TO_TRY, SearchVariant, variants_of
from ace_studio.engine.plan import bind_plan
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import cost, is_accurate, is_affordable, rank, step_figures
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ImproveMethod, Objective
from ace_studio.records.results import RunStatus, SearchStep

MOST_KEPT = 3
LEVEL = 1.25
"""What meets the goal and is within this factor of the best is measured, saved and verified too, on every target."""
CLEARLY_BEHIND = 0.95
"""A variant is searched only if its cheapest candidate costs at most this share of what meets the goal already."""
HIGH_PRECISIONS = (Precision.BF16, Precision.FP32)
"""For ops that are not low: 16 bits only where they are faster than eager. Without data fp16 is tried too."""

Evaluated = tuple[SearchVariant, SearchStep]
"""A variant and what all ops at its precision gave."""


class GoalSearch:
    """One search over all targets. The job's state receives its candidates, its steps and its notes."""

    def __init__(self, job: CompressionJob) -> None:
        self._job = job
        self._goal = job.recipe.goal
        self._evaluator = PlanEvaluator(job)

    def run(self, targets: Sequence[Target]) -> None:
        """Search on all targets; the variants that promise most are searched first, so that others can be left out."""
        if self._goal.optimize is Objective.ACCURACY:
            for target in targets:
                self._most_accurate(target)
        else:
            self._cheapest(targets)
            self._try_what_is_exact(targets)
            self._try_options(targets)
        for target in targets:
            self._note_unaffordable(target)
            self._keep_only_the_best(target)

    def _cheapest(self, targets: Sequence[Target]) -> None:
        """Find the cheapest plans that are accurate enough, on every target that can still win."""
        variants = [variant for target in targets for variant in variants_of(self._job, target)]
        unknown = [variant for variant in variants if not self._evaluator.is_known(variant)]
        expect_builds(self._job, [(variant.target, variant.plan) for variant in unknown])
        all_low: list[Evaluated] = []
        for variant in variants:
            is_outdone = self._has_slower_rest(variant, all_low)
            if not is_outdone and (step := self._evaluate_all_low(variant)) is not None:
                all_low.append((variant, step))
        by_target = {target.name: [pair for pair in all_low if pair[0].target is target] for target in targets}
        for own in sorted(filter(None, by_target.values()), key=lambda own: min(self._cost(step) for _, step in own)):
            self._search_target(own)
        for target in targets:
            lows = [step for _, step in by_target[target.name]]
            if not any(one.step.meets for one in self._evaluator.on_target(target)) and not self._is_outrun(lows):
                self._try_floats(target)

    def _has_slower_rest(self, variant: SearchVariant, known: Sequence[Evaluated]) -> bool:
        """Whether another low precision was slower with this rest of the plan than with another one.

        Where all floats of a program have one type, the same is expected of this precision.
        """
        if not variant.target.row.has_one_float:
            return False
        own = [(one, self._cost(step)[0]) for one, step in known if one.target is variant.target]
        return any(
            one.plan.default is other.plan.default and CLEARLY_BEHIND * cost > least
            for one, cost in own
            for other, least in own
            if one.plan.rest is variant.plan.rest is not other.plan.rest
        )

    def _search_target(self, own: Sequence[Evaluated]) -> None:
        """Mix the precisions of a target, where one of its variants needs that or may gain by it."""
        is_possible = not self._is_fp32_inaccurate(own[0][0].target)
        better = self._with_better_weights(own) if is_possible else list(own)
        hopeless = {variant.name: self._hopeless(step) for variant, step in better if not self._is_accurate(step)}
        for name, reason in hopeless.items():
            if reason:
                self._note(name, reason)
        if not is_possible or all(hopeless.get(variant.name, self._outdone(step)) for variant, step in better):
            return
        if self._prefers_exact or not any(self._is_accurate(step) for _, step in better):
            self._mix(better, Least.BYTES if self._wants_small else Least.TIME)

    def _evaluate_all_low(self, variant: SearchVariant) -> SearchStep | None:
        """None if it could not be built."""
        step = self._evaluator.variant(variant)
        return None if step is None or step.fidelity is None else step

    def _with_better_weights(self, own: Sequence[Evaluated]) -> list[Evaluated]:
        """The most promising inaccurate variant with improved weights where these are better: they cost no latency."""
        improve = self._job.recipe.improve
        lacking = [pair for pair in own if not self._is_accurate(pair[1]) and self._may_win_by_weights(*pair)]
        if not lacking or not improve.by_search or improve.methods:
            return list(own)
        variant, step = min(lacking, key=lambda pair: self._cost(pair[1]))
        methods = METHODS_TO_TRY.get(variant.plan.default, ())
        without = tuple(one for one in methods if one is not ImproveMethod.LEARNED_ROUNDING)
        for tried in dict.fromkeys((methods, without)):  # what was learned may not hold in what the target builds
            if not tried or not self._job.improvements.methods_that_help(variant.plan, tried):
                continue
            improved = SearchVariant(variant.target, variant.plan, methods=tried)
            found = self._evaluate_all_low(improved)
            if found is not None and _inaccuracy(found) < _inaccuracy(step):
                return [(improved, found) if one is variant else (one, its) for one, its in own]
        return list(own)

    def _may_win_by_weights(self, variant: SearchVariant, step: SearchStep) -> bool:
        """Whether better weights may make a variant the best: one that is hardly faster must not cost their search."""
        if not self._hopeless(step):
            return True
        best = self._best_so_far()
        is_faster = best is not None and self._cost(step) < self._cost(best)
        methods = METHODS_TO_TRY.get(variant.plan.default, ())
        is_free = self._job.improvements.are_known(variant.plan, methods)
        return is_faster and is_free and is_affordable(step_figures(step), self._goal)

    def _mix(self, own: Sequence[Evaluated], least: Least) -> None:
        """Evaluate the mixtures of a target that promise most; one search per precision of what is not planned."""
        rests = list(dict.fromkeys(variant.plan.rest for variant, _ in own))
        for rest in rests:
            family = [(variant, step) for variant, step in own if variant.plan.rest is rest]
            methods = max((variant.methods for variant, _ in own), key=len)
            lows = [variant.plan.default for variant, _ in family]
            is_for_speed = all(self._is_accurate(step) for _, step in family)
            needs_accuracy = least is not Least.NOISE and not is_for_speed
            highs = self._highs(family[0][0].target, lows, needs_accuracy=needs_accuracy)
            if self._has_same_builds(family[0][0], highs, rests):
                continue
            mixer = make_mixer(self._job, self._evaluator, [variant for variant, _ in family], highs, methods=methods)
            if mixer is None:
                continue
            before = self._best_so_far()
            self._job.state.front += mixer.search(least, is_accurate=self._is_accurate, min_db=self._min_db)
            if least is not Least.NOISE and before is None and self._best_so_far() is None:
                self._note(family[0][0].name, "no mixture of precisions that was tried is accurate enough")

    @staticmethod
    def _has_same_builds(variant: SearchVariant, highs: Sequence[Precision], rests: Sequence[Precision]) -> bool:
        """Whether the mixtures of a variant with these high precisions are built for another rest of the plan too.

        Where all floats of a program have one type, the rest is at that of the high ops anyway.
        """
        rest = variant.plan.rest
        return variant.target.row.has_one_float and bool(highs) and rest not in highs and highs[0] in rests

    def _is_outrun(self, all_low: Sequence[SearchStep]) -> bool:
        """Whether a plan that meets the goal is better than all that a target has with all ops low."""
        best = self._best_so_far()
        return best is not None and bool(all_low) and min(map(self._cost, all_low))[0] > self._cost(best)[0]

    def _best_so_far(self) -> SearchStep | None:
        meeting = [one.step for one in self._evaluator.plans if one.step.meets]
        return min(meeting, key=self._cost, default=None)

    def _try_what_is_exact(self, targets: Sequence[Target]) -> None:
        """Evaluate fp32 wherever a faster plan may be chosen, and the original if the best is not much faster than it.

        Only where speed is wanted and the plan is left to the goal: there, what is not faster is not chosen.
        """
        best = self._best_so_far()
        if best is None or not self._prefers_exact:
            return
        original = original_target(self._job.loaded.frontend)
        for target in targets:
            own = [one.step for one in self._evaluator.on_target(target) if one.step.meets]
            is_level = bool(own) and min(map(self._cost, own))[0] <= LEVEL * self._cost(best)[0]
            if is_level or (target.name == original and self._cost(best)[0] * LEVEL > 1.0):
                self._evaluator.uniform(target, Precision.FP32)

    def _try_options(self, targets: Sequence[Target]) -> None:
        """Build the best plan of each target that may be chosen in the target's other ways, where speed is wanted."""
        best = self._best_so_far()
        if best is None or self._goal.optimize is not Objective.LATENCY:
            return
        for target in targets:
            own = [one for one in self._evaluator.on_target(target) if one.step.meets]
            fastest = min(own, key=lambda one: self._cost(one.step), default=None)
            if fastest is None or self._cost(fastest.step)[0] > LEVEL * self._cost(best)[0]:
                continue
            bound = bind_plan(fastest.plan, self._job.captured.table, op_problem=target.op_problem)
            for options in target.options(bound, self._job.captured.table):
                found = self._evaluator.otherwise(fastest, options)
                if found is not None and found.step.meets:
                    fastest = found

    @property
    def _prefers_exact(self) -> bool:
        """Whether what is exact is chosen where nothing is faster: the plan is free, speed is wanted, and fp32 fits."""
        limit_mb = self._goal.max_size_mb
        is_too_large = limit_mb is not None and self._job.state.baseline.size_bytes / 1e6 > limit_mb
        return self._job.recipe.plan.from_goal and self._goal.optimize is Objective.LATENCY and not is_too_large

    def _most_accurate(self, target: Target) -> None:
        """Find the most accurate plan that is affordable: fp32 if it is, else as many high ops as fit."""
        if any(step.meets for step in self._try_floats(target, all_of_them=True)):
            return
        for variant in variants_of(self._job, target):
            all_low = self._evaluate_all_low(variant)
            if all_low is None:
                continue
            if not is_affordable(step_figures(all_low), self._goal):
                self._note(variant.name, "with all ops low, " + "; ".join(all_low.misses))
            else:
                self._mix(self._with_better_weights([(variant, all_low)]), Least.NOISE)

    def _try_floats(self, target: Target, *, all_of_them: bool = False) -> list[SearchStep]:
        """Evaluate all ops at 16 bits, then at fp32; the second only if the first misses the goal, or if asked for."""
        steps: list[SearchStep] = []
        tried = HIGH_PRECISIONS if self._job.state.has_data else (Precision.BF16, Precision.FP16, Precision.FP32)
        for precision in tried:
            if target.available().ok and target.precision_problem(precision):
                continue
            step = self._evaluator.uniform(target, precision)
            if step is not None:
                steps.append(step)
                if step.meets and not all_of_them:
                    break
        if steps and not any(map(self._is_accurate, steps)):
            self._note(target.name, "all ops at fp32 miss the goal too: " + "; ".join(steps[-1].misses))
        return steps

    def _is_fp32_inaccurate(self, target: Target) -> bool:
        step = self._evaluator.known_uniform(target, Precision.FP32)
        return step is not None and not self._is_accurate(step)

    def _note_unaffordable(self, target: Target) -> None:
        """Note the smallest size and latency on a target if they are above the bounds."""
        built = [one.step for one in self._evaluator.on_target(target) if one.step.fidelity is not None]
        sizes = [(step.size_bytes / 1e6, step.low) for step in built if step.size_bytes]
        ratios = [(step.latency_ratio, step.low) for step in built if step.latency_ratio]
        for bound, found, words in (
            (self._goal.max_size_mb, sizes, "the smallest of {} plans, {}, has {:.3g} MB"),
            (self._goal.max_latency_ratio, ratios, "the fastest of {} plans, {}, takes {:.3g} of the baseline's time"),
        ):
            if bound is not None and found and min(found)[0] > bound:
                value, low = min(found)
                self._note(target.name, words.format(len(built), low, value))

    def _highs(self, target: Target, lows: Sequence[Precision], *, needs_accuracy: bool) -> list[Precision]:
        """Evaluate what ops that are not low may run at, the most exact last; empty if none is accurate enough."""
        if self._wants_small and Precision.INT4_WEIGHT in lows:
            step = self._evaluator.uniform(target, Precision.INT8_WEIGHT)
            if step is not None and self._is_accurate(step):
                return [Precision.INT8_WEIGHT]
        highs: list[Precision] = []
        for precision in HIGH_PRECISIONS:
            step = None if target.precision_problem(precision) else self._evaluator.uniform(target, precision)
            if step is None or step.fidelity is None:
                continue
            is_fast = step.latency_ratio is not None and step.latency_ratio < 1.0
            if precision is not Precision.FP32 and not is_fast:
                continue
            if self._is_accurate(step) or not needs_accuracy:
                return [*highs, precision]
            if not target.row.has_one_float:
                highs.append(precision)
        return []

    @property
    def _wants_small(self) -> bool:
        return self._goal.optimize is Objective.SIZE

    def _outdone(self, step: SearchStep) -> str:
        """Why a variant that is accurate needs no mixture: another target is clearly better; empty if none is."""
        best = self._best_so_far()
        is_behind = best is not None and CLEARLY_BEHIND * self._cost(step)[0] > self._cost(best)[0]
        if is_behind or not self._prefers_exact:
            return "it meets the goal"
        return ""

    def _hopeless(self, all_low: SearchStep) -> str:
        """Why a variant cannot win, given its step with all ops low; empty if it can."""
        if not is_affordable(step_figures(all_low), self._goal):
            return "with all ops low it is already too large or too slow, and high ops add to that"
        best = self._best_so_far()
        if best is not None and self._cost(all_low)[0] > CLEARLY_BEHIND * self._cost(best)[0]:
            return f"with all ops low it is no better than {best.target} {best.low}, which meets the goal"
        return ""

    def _keep_only_the_best(self, target: Target) -> None:
        """Keep the plans that meet the goal and are about as good as the best, or else the nearest one."""
        built = [one for one in self._evaluator.on_target(target) if one.step.status is RunStatus.OK]
        built.sort(key=lambda one: rank(step_figures(one.step), self._goal))
        meeting = [one for one in built if one.step.meets]
        level = [one for one in meeting if self._is_level(one, meeting[0])]
        exact = [one for one in level[MOST_KEPT:] if one.plan.label == Precision.FP32 and self._prefers_exact]
        kept = level[:MOST_KEPT] + exact
        if built:
            self._evaluator.keep_only(target, kept or built[:1])

    def _is_level(self, one: EvaluatedPlan, best: EvaluatedPlan) -> bool:
        """Whether a few rounds cannot tell that a plan is worse than the best."""
        if self._cost(one.step)[0] <= LEVEL * self._cost(best.step)[0]:
            return True
        if self._goal.optimize is not Objective.LATENCY or one.candidate is None or best.candidate is None:
            return False
        fastest, slowest = one.candidate.run.speedup_high, best.candidate.run.speedup_low
        return fastest is not None and slowest is not None and fastest >= slowest

    @property
    def _min_db(self) -> float | None:
        """The fidelity to aim at; None if the metric decides."""
        return self._goal.min_sqnr_db if self._goal.max_drop is None else None

    def _is_accurate(self, step: SearchStep) -> bool:
        return step.fidelity is not None and is_accurate(step_figures(step), self._goal)

    def _cost(self, step: SearchStep) -> tuple[float, ...]:
        return cost(step_figures(step), self._goal.optimize)

    def _note(self, subject: str, reason: str) -> None:
        subjects = self._job.state.search_notes.setdefault(reason, [])
        if subject not in subjects:
            subjects.append(subject)


def _inaccuracy(step: SearchStep) -> tuple[float, ...]:
    return cost(step_figures(step), Objective.ACCURACY)[:2]
