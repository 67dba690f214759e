"""One compression job: candidates are built, checked, evaluated, measured together, exported, and one is chosen."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch

from ace_studio.engine import evaluate, export, measure
from ace_studio.engine.environment import result_environment
from ace_studio.engine.flow import CapturedModel, Example, LoadedModel, PartialModel
from ace_studio.engine.pipeline.calibration import read_calibration
from ace_studio.engine.pipeline.candidates import (
    Candidate,
    choose,
    fallback_plans,
    first_plans,
    goal_misses,
    make_candidate,
    pareto_points,
    select_targets,
    unsupported_op,
)
from ace_studio.engine.pipeline.op_reports import report_ops
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import sqnr_db
from ace_studio.engine.targets import TARGETS
from ace_studio.engine.targets.base import Lowered, LoweringJob, Target
from ace_studio.engine.targets.flat_call import tensor_places
from ace_studio.engine.targets.library_error import library_reason
from ace_studio.engine.targets.pieces import PiecesLowered, lower_pieces
from ace_studio.engine.torch_compat import foreign_operators
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import BaselineMeasured, Phase, TargetFinished
from ace_studio.records.plan import Plan, Precision
from ace_studio.records.recipe import Goal, Objective, Recipe
from ace_studio.records.results import Baseline, CaptureReport, Result, ResultStatus, RunStatus

UNREPEATABLE = frozenset({"random", "dropout-in-eval"})
"""Codes of capture warnings that explain why two calls differ."""


@dataclass
class Outcome:
    """What a compression job leaves behind in this process."""

    result: Result
    chosen: Lowered | None
    """The chosen candidate, alive."""


@dataclass
class CompressionJob:
    """All that one job carries from step to step."""

    loaded: LoadedModel
    captured: CapturedModel | PartialModel
    capture: CaptureReport
    recipe: Recipe
    output: Path
    reporter: Reporter
    candidates: list[Candidate] = field(default_factory=list)
    left_out: list[Candidate] = field(default_factory=list)
    """What ``auto`` did not try because the target cannot do the plan."""
    baseline: Baseline = field(default_factory=Baseline)
    shared: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = measure.resolve_threads(self.recipe.measure.threads)
        self.references = evaluate.eager_outputs(self.captured)
        self._calibration: list[Example] | None = None

    def run(self) -> Outcome:
        """Go through the steps; a target that fails is a failed run, not a failed job."""
        self._check_goal()
        targets = select_targets(self.recipe.targets.names, TARGETS)
        threads_before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            self._measure_baseline_metric()
            self._check_calibration()
            self._try_plans(targets)
            self._measure_latency()
            self._export()
            return self._choose()
        finally:
            torch.set_num_threads(threads_before)

    # --- before anything is built ---

    def _check_goal(self) -> None:
        if self.recipe.goal.max_drop is not None and self.loaded.evaluate is None:
            raise AceError.of(
                ErrorCode.NO_DATA,
                "The goal limits the drop of the metric, but there is no metric",
                why="[goal] max_drop needs an evaluate(predict) -> float function, and [evaluate] function is empty",
                remedy="Name the function in [evaluate], or use min_sqnr_db, which needs no labels.",
                where="[goal] max_drop",
            )

    def _measure_baseline_metric(self) -> None:
        size = sum(leaf.numel() * leaf.element_size() for leaf in self.captured.module.state_dict().values())
        metric = None
        if self.loaded.evaluate is not None:
            self.reporter.phase(Phase.EVALUATE, self.baseline.name)
            predict = evaluate.on_device(self.captured.module, self.captured.device)
            metric = evaluate.measure_metric(self.loaded.evaluate, self._cancellable(predict), what=self.baseline.name)
        self.baseline = msgspec.structs.replace(self.baseline, metric=metric, size_bytes=size)
        self._tell_baseline()

    # --- building ---

    def _try_plans(self, targets: Sequence[Target]) -> None:
        if self.recipe.plan.from_goal and self.recipe.goal.has_bound:
            for target in targets:
                self._search(target, first_plans(self.recipe))
        else:
            for target, plan in itertools.product(targets, first_plans(self.recipe)):
                self._try(target, plan)
        for plan in fallback_plans(self.recipe):
            if any(self._keeps_accuracy(candidate) for candidate in self.candidates):
                break
            for target in targets:
                self._try(target, plan)
        if not self.candidates:
            self.candidates = self.left_out
            self.reporter.warn("nothing-fits", "No target could run the plan; each run says why")

    def _search(self, target: Target, plans: Sequence[Plan]) -> None:
        """Try the plans from the smallest up; once one kind keeps the accuracy, wider kinds are not built.

        Both int8 kinds are always tried, because which one is faster depends on the model. When the goal asks for the
        best accuracy, everything is built.
        """
        kept = False
        for plan in plans:
            is_wider = plan.default not in (Precision.INT8_STATIC, Precision.INT8_DYNAMIC)
            if kept and is_wider and self.recipe.goal.optimize is not Objective.ACCURACY:
                return
            candidate = self._try(target, plan)
            kept = kept or self._keeps_accuracy(candidate)

    def _keeps_accuracy(self, candidate: Candidate) -> bool:
        accuracy_only = Goal(max_drop=self.recipe.goal.max_drop, min_sqnr_db=self.recipe.goal.min_sqnr_db)
        is_built = candidate.run.status is RunStatus.OK and candidate.lowered is not None
        return is_built and not goal_misses(candidate.run, self.baseline, accuracy_only)

    def _try(self, target: Target, plan: Plan) -> Candidate:
        candidate = make_candidate(target, plan, self.captured.table, device=self.captured.device)
        if candidate.run.status is RunStatus.UNAVAILABLE and target.name not in self.recipe.targets.names:
            self.left_out.append(candidate)  # auto is all targets that fit; this one does not
            return candidate
        self.candidates.append(candidate)
        is_whole = isinstance(self.captured, CapturedModel)  # a piece that cannot be built stays eager
        if is_whole and (problem := unsupported_op(target, self.capture, self.captured.table)):
            candidate.fail(problem)
        if candidate.run.status is RunStatus.OK:
            self._guarded(candidate, self._build)
        if candidate.lowered is not None:
            self._guarded(candidate, self._check)
        if candidate.lowered is not None and self.loaded.evaluate is not None:
            self._guarded(candidate, self._evaluate)
        self._tell(candidate)
        return candidate

    def _guarded(self, candidate: Candidate, step: Callable[[Candidate], None]) -> None:
        """Run one step; what goes wrong is recorded in the candidate. Only a stop ends the job."""
        try:
            step(candidate)
        except AceError as error:
            if error.problem.code is ErrorCode.CANCELLED:
                raise
            candidate.fail(error.problem)
        except MemoryError:
            candidate.fail(Problem(code=ErrorCode.OUT_OF_MEMORY, what=f"{candidate.label} ran out of memory"))
        except Exception as error:  # noqa: BLE001 - border: a runtime's own library may raise anything
            candidate.fail(_problem_of(candidate, error))

    def _build(self, candidate: Candidate) -> None:
        self.reporter.phase(Phase.LOWER, candidate.label)
        started = time.monotonic()
        folder = self._folder_of(candidate)
        folder.mkdir(parents=True, exist_ok=True)
        captured = self.captured if isinstance(self.captured, CapturedModel) else self.captured.pieces[0].captured
        job = LoweringJob(
            captured=captured,
            plan=candidate.plan,
            calibration=self._calibration_examples,
            threads=self.threads,
            device=self.captured.device,
            folder=folder,
            reporter=self.reporter,
            shared=self.shared,
        )
        if isinstance(self.captured, CapturedModel):
            candidate.lowered = candidate.target.lower(job)
        else:
            candidate.lowered = lower_pieces(candidate.target, self.captured, job)
        candidate.note(build_seconds=round(time.monotonic() - started, 3))

    def _check(self, candidate: Candidate) -> None:
        assert candidate.lowered is not None
        self.reporter.phase(Phase.VERIFY, candidate.label)
        try:
            fidelity = evaluate.check_candidate(
                candidate.lowered, self.captured.examples, self.references, sqnr_db=sqnr_db, suspect=self._suspect()
            )
            if candidate.plan.precisions <= {Precision.FP32}:
                evaluate.check_same_arithmetic(fidelity)
        except AceError as error:
            self._accept_decisions(candidate, error)
            return
        candidate.note(sqnr_db=round(fidelity.sqnr_db, 3), max_abs_error=fidelity.max_abs_error)

    def _accept_decisions(self, candidate: Candidate, error: AceError) -> None:
        """Take a model in pieces whose pieces are right although the whole differs; raise ``error`` for all others.

        Python between the pieces sorts, thresholds and selects: one rounding can change how many boxes there are.
        """
        if error.problem.code is not ErrorCode.WRONG_CAPTURE or not isinstance(candidate.lowered, PiecesLowered):
            raise error
        fidelity_db = candidate.lowered.piece_sqnr_db()
        if candidate.plan.precisions <= {Precision.FP32} and fidelity_db < evaluate.MIN_FP32_SQNR_DB:
            raise error
        self.reporter.warn(
            "decisions",
            f"{candidate.label}: every piece agrees with eager ({fidelity_db:.1f} dB or better, shown as SQNR), but "
            "results of the whole differ where Python decides by values: compare by a metric of your own",
            where="[evaluate] function",
        )
        candidate.note(sqnr_db=round(fidelity_db, 3))

    def _suspect(self) -> str:
        """What the capture found that makes a model differ from call to call, if anything."""
        found = [one for one in self.capture.warnings if one.code in UNREPEATABLE]
        return "; ".join(f"{one.what} ({one.where})" if one.where else one.what for one in found)

    def _evaluate(self, candidate: Candidate) -> None:
        assert candidate.lowered is not None
        assert self.loaded.evaluate is not None
        assert self.baseline.metric is not None
        self.reporter.phase(Phase.EVALUATE, candidate.label)
        predict = self._cancellable(evaluate.on_device(candidate.lowered, self.captured.device))
        metric = evaluate.measure_metric(self.loaded.evaluate, predict, what=candidate.label)
        drop = evaluate.metric_drop(
            self.baseline.metric, metric, higher_is_better=self.recipe.evaluate.higher_is_better
        )
        candidate.note(metric=metric, metric_drop=drop)

    def _cancellable(self, predict: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            self.reporter.check()
            return predict(*args, **kwargs)

        return checked

    def _calibration_examples(self) -> Sequence[Example]:
        if self._calibration is None:
            self.reporter.phase(Phase.CALIBRATE, "reading the calibration examples")
            self._calibration = read_calibration(self.loaded, self.captured, samples=self.recipe.calibration.samples)
        return [example.copied() for example in self._calibration]

    def _check_calibration(self) -> None:
        """Read the calibration data before anything is built: if it is no good, no target can do without it."""
        if self.loaded.calibration is not None and any(plan.needs_calibration for plan in first_plans(self.recipe)):
            self._calibration_examples()

    # --- measuring, exporting, choosing ---

    def _measure_latency(self) -> None:
        alive = [candidate for candidate in self.candidates if candidate.lowered is not None]
        self.reporter.phase(Phase.MEASURE, f"{len(alive)} candidates and the baseline, in turn")
        example = self.captured.examples[0]
        calls: dict[str, Callable[[], object]] = {self.baseline.name: _bind(example, self.captured.module)}
        for index, candidate in enumerate(alive):
            calls[f"{candidate.label} #{index}"] = _bind(example, candidate.lowered)
        timer = measure.cuda_event_ms if self.captured.device.type == "cuda" else measure.wall_clock_ms
        samples = measure.measure_interleaved(
            calls, rounds=self.recipe.measure.rounds, reporter=self.reporter, timer=timer
        )
        base = samples.pop(self.baseline.name)
        self.baseline = msgspec.structs.replace(self.baseline, latency_ms=base.latency())
        self._tell_baseline()
        for candidate, one in zip(alive, samples.values(), strict=True):
            ratio = measure.ratio_of(base, one)
            candidate.note(
                latency_ms=one.latency(), speedup=ratio.median, speedup_low=ratio.low, speedup_high=ratio.high
            )
            self._tell(candidate)
        if self.captured.device.type == "cpu" and (
            busy := measure.contention([base, *samples.values()], threads=self.threads)
        ):
            self.reporter.warn("contention", busy)

    def _export(self) -> None:
        for candidate in self.candidates:
            if candidate.lowered is not None:
                self.reporter.phase(Phase.EXPORT, candidate.label)
                self._guarded(candidate, self._save_and_verify)
                self._guarded(candidate, self._report_ops)
                self._tell(candidate)

    def _save_and_verify(self, candidate: Candidate) -> None:
        assert candidate.lowered is not None
        path = candidate.lowered.save(self._folder_of(candidate))
        candidate.note(artifact=path.relative_to(self.output).as_posix(), size_bytes=export.artifact_bytes(path))
        chosen = [*self.captured.examples[:3], *self.captured.unseen[:2]]
        expected = [evaluate.flat_outputs(candidate.lowered, example) for example in chosen]
        if isinstance(self.captured, CapturedModel):
            export.verify_artifact(
                candidate.target.name,
                path,
                chosen,
                expected=expected,
                places=tensor_places(self.captured),
                threads=self.threads,
                device=self.captured.device,
                reporter=self.reporter,
                registers=self._registering_source(self.captured),
            )
        else:
            export.verify_pieces(
                candidate.target.name,
                path,
                chosen,
                expected=expected,
                module=self.captured.module,
                model=export.ModelSource(recipe=self.recipe, folder=str(Path.cwd())),
                threads=self.threads,
                reporter=self.reporter,
            )
        candidate.note(verified=True)

    def _registering_source(self, captured: CapturedModel) -> export.ModelSource | None:
        """Where operators are registered that are none of torch's own; None if there are none, or nobody can tell."""
        names = foreign_operators(captured.program)
        if not names:
            return None
        self.reporter.warn(
            "custom-op",
            f"The exported programs of torch call {', '.join(names[:3])}, which the model's code registers: whoever "
            "opens one must import that code first",
            where=str(self.loaded.source) if self.loaded.files else "",
        )
        return export.ModelSource(recipe=self.recipe, folder=str(Path.cwd())) if self.loaded.files else None

    def _report_ops(self, candidate: Candidate) -> None:
        if candidate.lowered is not None:
            actual = candidate.lowered.read_back()
            support = {
                op.id: op for one in self.capture.support if one.target == candidate.target.name for op in one.ops
            }
            candidate.note(ops=report_ops(self.captured.table, candidate.plan, actual, support=support))

    def _choose(self) -> Outcome:
        runs = tuple(candidate.run for candidate in self.candidates)
        chosen, goal_met = choose(runs, self.baseline, self.recipe.goal)
        status, error = ResultStatus.OK, None
        if chosen is None:
            status = ResultStatus.FAILED
            error = _nothing_worked(self.candidates)
        elif goal_met is False:
            status = ResultStatus.GOAL_NOT_MET
            misses = goal_misses(runs[chosen], self.baseline, self.recipe.goal)
            error = Problem(
                code=ErrorCode.GOAL_NOT_MET,
                what="No candidate meets the goal",
                why=f"the best found is {self.candidates[chosen].label}: " + "; ".join(misses),
                remedy="Relax the goal, keep sensitive modules at fp32 with rules, or add targets.",
                where="[goal]",
            )
        example = self.captured.examples[0]
        environment = result_environment(threads=self.threads, device=self.captured.device)
        environment["measured_input"] = ", ".join(
            "x".join(map(str, leaf.shape)) or "scalar" for leaf in example.tensors()
        )
        result = Result(
            status=status,
            fingerprint=_fingerprint(self.captured.fingerprint, self.recipe),
            environment=environment,
            capture=self.capture,
            baseline=self.baseline,
            runs=runs,
            chosen=chosen,
            goal_met=goal_met,
            pareto=pareto_points(runs),
            warnings=tuple(self.reporter.warnings),
            error=error,
        )
        return Outcome(result=result, chosen=None if chosen is None else self.candidates[chosen].lowered)

    # --- telling ---

    def _folder_of(self, candidate: Candidate) -> Path:
        index = self.candidates.index(candidate)
        name = re.sub(r"[^a-z0-9-]+", "-", candidate.label.lower())
        return self.output / "artifacts" / f"{index:02d}-{name}"

    def _tell(self, candidate: Candidate) -> None:
        self.reporter.emit(
            TargetFinished(
                job=self.reporter.job,
                fingerprint=self.captured.fingerprint,
                index=self.candidates.index(candidate),
                run=candidate.run,
            )
        )

    def _tell_baseline(self) -> None:
        self.reporter.emit(
            BaselineMeasured(job=self.reporter.job, fingerprint=self.captured.fingerprint, baseline=self.baseline)
        )


def _bind(example: Example, function: Callable[..., Any] | None) -> Callable[[], object]:
    """One call on tensors of its own: what one candidate writes into its inputs, no other one reads."""
    assert function is not None
    own = example.copied()
    return lambda: own.call(function)


def _problem_of(candidate: Candidate, error: Exception) -> Problem:
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        what=f"{candidate.target.label} could not build or run this model at {candidate.run.precision}",
        why=library_reason(error),
        remedy="Try another target or keep the op that it names at fp32; the details hold what the library said.",
        details=f"{type(error).__name__}: {error}"[:20_000],
    )


def _nothing_worked(candidates: Sequence[Candidate]) -> Problem:
    """One problem out of many; a reason that several runs share is said once."""
    labels: dict[str, list[str]] = {}
    for one in candidates:
        if (error := one.run.error) is not None:
            is_refusal = one.run.status is RunStatus.UNAVAILABLE and error.why
            labels.setdefault(error.why if is_refusal else error.what, []).append(one.label)
    kinds = {one.run.error.code for one in candidates if one.run.error is not None}
    return Problem(
        code=kinds.pop() if len(kinds) == 1 else ErrorCode.UNSUPPORTED,
        what="No target gave a verified artifact",
        why="; ".join(f"{', '.join(names)}: {reason}" for reason, names in labels.items())
        or "no target is available here",
        remedy="Look at each run's reason; `ace-studio doctor` says which targets are installed.",
    )


def _fingerprint(captured: str, recipe: Recipe) -> str:
    return hashlib.sha256(captured.encode() + msgspec.json.encode(recipe, order="deterministic")).hexdigest()
