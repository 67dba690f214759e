"""The evaluation of plans in a search: each is built, compared with eager, timed and weighed once."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from ace_studio.engine import export, measure
from ace_studio.engine.pipeline.compress.candidates import Candidate, make_candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.pipeline.compress.saving import save_artifact
from ace_studio.engine.pipeline.compress.search.prices import PricedBuild
from ace_studio.engine.pipeline.compress.search.steps import (
    BuildTimes,
    StepStore,
    evaluation_key,
    step_key,
    with_findings,
)
from ace_studio.engine.pipeline.compress.search.variants import SearchVariant
from ace_studio.engine.pipeline.compress.timing import ratio_facts, time_beside
from ace_studio.engine.pipeline.compress.trying import try_plan
from ace_studio.engine.targets.base import Target
from ace_studio.records.goals import is_clearly_faster
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.results import RunStatus, SearchStep, Warning

QUICK_ROUNDS = 8
"""An even number: every second round has the opposite order."""


@dataclass
class EvaluatedPlan:
    """A plan, its step, and its candidate if this run of the job has built it."""

    step: SearchStep
    variant: SearchVariant
    plan: Plan
    candidate: Candidate | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Op id -> why it has its precision."""


class PlanEvaluator:
    """Evaluates the plans of one search; steps of earlier jobs that differ in their goal at most are reused."""

    def __init__(self, job: CompressionJob) -> None:
        self._job = job
        self._store = StepStore(job.output, evaluation_key(job), goal=job.recipe.goal)
        self._plans: dict[str, EvaluatedPlan] = {}
        self._from_recipe: list[Candidate] = []
        """Candidates of the recipe's own plan: never dropped."""

    @property
    def plans(self) -> list[EvaluatedPlan]:
        """Everything evaluated so far, in order."""
        return list(self._plans.values())

    def on_target(self, target: Target) -> list[EvaluatedPlan]:
        """Everything evaluated so far on one target."""
        return [one for one in self._plans.values() if one.variant.target is target]

    def is_known(self, variant: SearchVariant) -> bool:
        """Whether the variant with all ops low was evaluated, now or in an earlier job."""
        key = step_key(variant.target, variant.plan, variant.methods, variant.options)
        return key in self._plans or self._store.find(key) is not None

    def known_uniform(self, target: Target, precision: Precision) -> SearchStep | None:
        """The step of all ops at one precision; None if it was not evaluated."""
        return self.step_of(self.uniform_variant(target, precision))

    def step_of(self, variant: SearchVariant) -> SearchStep | None:
        """The step of a variant; None if it was not evaluated."""
        evaluated = self._plans.get(step_key(variant.target, variant.plan, variant.methods, variant.options))
        return None if evaluated is None else evaluated.step

    def uniform(self, target: Target, precision: Precision) -> SearchStep | None:
        """Evaluate all ops at one precision; None if the target cannot run it."""
        return self.variant(self.uniform_variant(target, precision))

    def uniform_variant(self, target: Target, precision: Precision) -> SearchVariant:
        """All ops at one precision, with none of the recipe's own rules."""
        plan = msgspec.structs.replace(self._job.recipe.plan, default=precision, rules=(), from_goal=False)
        return SearchVariant(target, plan, methods=self._job.recipe.improve.methods)

    def variant(self, variant: SearchVariant) -> SearchStep | None:
        """Evaluate a variant with all ops at its precision; None if the target cannot run it."""
        return self._evaluate(variant, variant.plan, self._described(variant), {})

    def mixture(self, variant: SearchVariant, step: SearchStep, reasons: Mapping[str, str]) -> SearchStep | None:
        """Evaluate a variant with the rules of a step; None if the target cannot run it.

        Args:
            variant: Its plan is that of the ops without a rule.
            step: The rules, and what is predicted for them.
            reasons: Op id -> why it has its precision.
        """
        plan = msgspec.structs.replace(variant.plan, rules=(*variant.plan.rules, *step.rules))
        described = self._described(variant)
        step = msgspec.structs.replace(step, target=described.target, low=described.low, improved=described.improved)
        return self._evaluate(variant, plan, step, reasons)

    def otherwise(self, one: EvaluatedPlan, options: Mapping[str, str]) -> EvaluatedPlan | None:
        """Evaluate an evaluated plan built with other options of its target; None if the target cannot run it.

        What is not clearly faster, in rounds with the plan as it was, is dropped.
        """
        variant = replace(one.variant, options=options)
        described = msgspec.structs.replace(one.step, options=dict(options), reused=False, run=None)
        if self._evaluate(variant, one.plan, described, one.reasons) is None:
            return None
        found = self._plans[step_key(variant.target, one.plan, variant.methods, options)]
        if found.candidate is None or found.candidate.lowered is None:
            return found  # read from disk, where what was no faster does not meet the goal; or it could not be built
        if one.candidate is None:
            self._build_reused(one)
        if one.candidate is not None and one.candidate.lowered is not None:
            before, after = time_beside(self._job, one.candidate.lowered, found.candidate, rounds=2 * QUICK_ROUNDS)
            ratio = measure.ratio_of(before, after)
            if not is_clearly_faster(ratio.median, ratio.low):
                words = ", ".join(f"{name} {value}" for name, value in options.items())
                reason = f"{words} is not clearly faster than without it: {ratio.median:.2f}x"
                self._drop(found.candidate, reason)
                found.step = self._judged_anew(found, meets=False, misses=(reason,), status=RunStatus.DROPPED)
        return found

    def _judged_anew(self, one: EvaluatedPlan, **changes: object) -> SearchStep:
        """The step with changes, in the job and on disk too."""
        place = self._job.state.search.index(one.step)
        step = msgspec.structs.replace(one.step, **changes)
        self._job.state.search[place] = step
        self._store.keep(step_key(one.variant.target, one.plan, one.variant.methods, one.variant.options), step)
        return step

    def _evaluate(
        self, variant: SearchVariant, plan: Plan, described: SearchStep, reasons: Mapping[str, str]
    ) -> SearchStep | None:
        key = step_key(variant.target, plan, variant.methods, variant.options)
        if key in self._plans:
            return self._plans[key].step
        candidate = None
        step = self._store.find(key)
        if step is None:
            started = time.monotonic()
            candidate = self._build(variant, plan, reasons)
            if candidate.run.status is RunStatus.UNAVAILABLE:
                return None
            step = with_findings(described, candidate, self._job.state.baseline, self._job.recipe.goal)
            run = self._job.state.candidates.index(candidate)
            step = msgspec.structs.replace(step, seconds=round(time.monotonic() - started, 3), run=run)
            self._store.keep(key, step)
        else:  # its rules are those of the key; what another job had predicted for them may differ
            step = msgspec.structs.replace(
                step, predicted_db=described.predicted_db, predicted_ratio=described.predicted_ratio
            )
        self._plans[key] = EvaluatedPlan(step, replace(variant), plan, candidate, reasons)
        self._job.state.search.append(step)
        return step

    def _described(self, variant: SearchVariant) -> SearchStep:
        return SearchStep(target=variant.target.name, low=variant.plan.label, improved=self._search_methods(variant))

    def priced(self, variant: SearchVariant) -> tuple[PricedBuild, float] | None:
        """An evaluated variant with the times of its ops, and the baseline's latency in ms; None if it has no figures.

        The runtime is asked once, and the answer is kept on disk with the step.
        """
        key = step_key(variant.target, variant.plan, variant.methods, variant.options)
        one = self._plans.get(key)
        if one is None or one.step.fidelity is None or not one.step.latency_ratio:
            return None
        times = self._store.times(key)
        if times is None:
            times = self._times_of(one)
            if times.baseline_ms:
                self._store.keep_times(key, times)
        planned = make_candidate(
            variant.target, variant.plan, self._job.captured.table, device=self._job.captured.device
        )
        build = PricedBuild(
            precision=variant.plan.default,
            assigned=planned.plan.assigned,
            ratio=one.step.latency_ratio,
            op_ms=times.op_ms,
            homes=times.homes,
            noise=10.0 ** (-one.step.fidelity / 10.0),
            size_bytes=one.step.size_bytes,
        )
        return build, times.baseline_ms

    def _times_of(self, one: EvaluatedPlan) -> BuildTimes:
        """Nothing where the build is gone: the ops are then priced by their arithmetic."""
        candidate = one.candidate
        if candidate is None or candidate.lowered is None or candidate.run.latency_ms is None:
            return BuildTimes()
        self._job.reporter.phase(Phase.MEASURE, f"{candidate.label}, op by op")
        actual = candidate.read_back()
        return BuildTimes(
            op_ms={one.op_id: one.latency_ms for one in actual if one.latency_ms},
            homes={one.op_id: one.fused_into for one in actual if one.fused_into},
            baseline_ms=candidate.run.latency_ms.p50 * (candidate.run.speedup or 1.0),
        )

    def _search_methods(self, variant: SearchVariant) -> tuple[str, ...]:
        """The helpful ones among the methods that the search added to the recipe's."""
        if not variant.methods or self._job.recipe.improve.methods:
            return ()
        return tuple(map(str, self._job.improvements.methods_that_help(variant.plan, variant.methods)))

    def _build(self, variant: SearchVariant, plan: Plan, reasons: Mapping[str, str]) -> Candidate:
        from_recipe = [
            one
            for one in self._job.state.candidates
            if (one.target, one.plan.plan, one.methods, one.options)
            == (variant.target, plan, variant.methods, variant.options)
        ]
        self._from_recipe += from_recipe
        candidate = (
            from_recipe[0]
            if from_recipe
            else try_plan(
                self._job,
                variant.target,
                plan,
                methods=variant.methods,
                weights_for=variant.plan,
                options=variant.options,
            )
        )
        candidate.kept = reasons
        for measure_it in (_time_quickly, _weigh):
            if candidate.lowered is not None:
                self._job.guarded(candidate, measure_it)
        return candidate

    def keep_only(self, target: Target, kept: Sequence[EvaluatedPlan]) -> None:
        """Build what is kept and was only read from disk; drop the target's other candidates, not the recipe's own."""
        for one in kept:
            if one.candidate is None:
                self._build_reused(one)
        for one in self.on_target(target):
            candidate = one.candidate
            if candidate is None or candidate.lowered is None or candidate in self._from_recipe:
                continue
            if not any(one is other for other in kept):
                self._drop(candidate, _better_words(kept[0].step))

    def _build_reused(self, one: EvaluatedPlan) -> None:
        one.candidate = self._build(one.variant, one.plan, one.reasons)
        state = self._job.state
        if one.candidate in state.candidates:
            place = state.search.index(one.step)
            one.step = msgspec.structs.replace(one.step, run=state.candidates.index(one.candidate))
            state.search[place] = one.step

    def _drop(self, candidate: Candidate, reason: str) -> None:
        shutil.rmtree(self._job.folder_of(candidate), ignore_errors=True)
        candidate.lowered = None
        warnings = (*candidate.run.warnings, Warning(code="dropped", what=reason))
        candidate.note(status=RunStatus.DROPPED, warnings=warnings)
        self._job.tell(candidate)


def _better_words(better: SearchStep) -> str:
    count = better.kept_high
    high = f" with {count} {'op' if count == 1 else 'ops'} at {better.high}" if count else ""
    return f"the search found a better plan: {better.target} {better.low}{high}"


def _time_quickly(job: CompressionJob, candidate: Candidate) -> None:
    """Time a few rounds against the baseline: enough to choose the next build, not to report."""
    job.reporter.phase(Phase.MEASURE, f"{candidate.label}, quickly")
    base, own = time_beside(job, job.reference, candidate, rounds=QUICK_ROUNDS)
    candidate.note(latency_ms=own.latency(), speed_undecided=base.undecided, **ratio_facts("speedup", base, own))


def _weigh(job: CompressionJob, candidate: Candidate) -> None:
    candidate.note(size_bytes=export.artifact_bytes(save_artifact(job, candidate)))
