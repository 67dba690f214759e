"""Better than plain quantization: methods that change the captured graph's weights, each kept only if it helps.

A method is one function and one row of `METHODS`. It gives changed weights that are kept apart from the capture, so
every target builds from the same improved weights, and results are still compared with the original module.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.flow import BoundPlan, CapturedModel
from ace_studio.engine.improve.compensate import compensate, correct_biases
from ace_studio.engine.improve.equalize import equalize
from ace_studio.engine.improve.gptq import gptq
from ace_studio.engine.improve.job import HIGH, ImproveJob, NoChange, WeightChange, changed_ops, with_changed_weights
from ace_studio.engine.improve.learned_rounding import learn_rounding
from ace_studio.engine.improve.norms import awq, smoothquant
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import SMALLEST_GAIN_DB, split_examples
from ace_studio.engine.quantize.observers import RangeChoice
from ace_studio.engine.quantize.simulate import READS, Int8Style
from ace_studio.records.errors import message_of
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.recipe import ImproveMethod
from ace_studio.records.results import Improvement

MOST_EXAMPLES = 32
"""At most so many calibration examples are used."""
SIMULATION_ERRORS = (RuntimeError, ValueError, KeyError, TypeError, IndexError)
"""What the user's graph may raise while it is simulated."""

METHODS: dict[ImproveMethod, Callable[[ImproveJob, list[WeightChange]], WeightChange | NoChange]] = {
    ImproveMethod.EQUALIZE: equalize,
    ImproveMethod.SMOOTHQUANT: smoothquant,
    ImproveMethod.BIAS_CORRECTION: correct_biases,
    ImproveMethod.COMPENSATE: compensate,
    ImproveMethod.GPTQ: gptq,
    ImproveMethod.AWQ: awq,
    ImproveMethod.LEARNED_ROUNDING: learn_rounding,
}
"""Each takes the job and the changes that were kept so far."""
ROUNDING = frozenset(
    {ImproveMethod.BIAS_CORRECTION, ImproveMethod.COMPENSATE, ImproveMethod.GPTQ, ImproveMethod.LEARNED_ROUNDING}
)
"""Methods that change the float model. They come last: scaling after them would move weights off their grids."""


@dataclass(frozen=True)
class Improved:
    """The changes that were kept, and the outcome of every method."""

    changes: tuple[WeightChange, ...] = ()
    reports: tuple[Improvement, ...] = ()


def improve(
    captured: CapturedModel,
    plan: BoundPlan,
    methods: Sequence[ImproveMethod],
    examples: Sequence[Sequence[Tensor]],
    *,
    ranges: RangeChoice,
    reporter: Reporter,
    style: Int8Style = READS,
    max_seconds: float = 120.0,
) -> Improved:
    """Try the methods one after the other, each on top of what was kept before, and keep what helps.

    Args:
        captured: A capture of the whole graph; it is not changed.
        plan: The precision of every op.
        methods: Tried in this order, those that keep the float model's function before those that round.
        examples: Flat tensor inputs of calibration examples. A quarter of them, one at least, is held out: a method
            does not see them, and is kept if the simulated plan comes closer to the unchanged float model on them.
            Rounding that was kept is learned again from all where these are fewer than `MOST_EXAMPLES`.
        ranges: How activation ranges follow from values.
        reporter: Gets every method as a phase.
        style: What the targets round around ops at int8-static.
        max_seconds: The most time that learned rounding takes to learn.
    """
    precision = str(plan.plan.default)
    problem = _problem(plan, examples)
    if problem:
        return Improved(reports=tuple(_not_applied(method, precision, problem) for method in methods))
    work, held = split_examples(examples[:MOST_EXAMPLES])
    job = ImproveJob(captured, plan, work, ranges, reporter, style, max_seconds)
    changes: list[WeightChange] = []
    reports: list[Improvement] = []
    with torch.no_grad():
        references = job.references(held)
        before = job.simulator(changes).fidelity_db(plan, held, references)
        for method in sorted(methods, key=lambda one: one in ROUNDING):
            reporter.phase(Phase.COMPRESS, f"trying {method} at {precision}")
            report, change = _try(job, method, changes, before=before, held=held, references=references)
            reports.append(report)
            if change is not None and report.after_db is not None:
                before = report.after_db
                changes.append(change)
        if changes and changes[-1].method == ImproveMethod.LEARNED_ROUNDING and len(examples) < MOST_EXAMPLES:
            place = next(at for at, one in enumerate(reports) if one.method == changes[-1].method)
            again = _learned_again(job, changes, reports[place], held=held, references=references)
            if again is not None:
                reports[place], changes[-1] = again
    return Improved(tuple(changes), tuple(reports))


def _learned_again(
    job: ImproveJob,
    changes: Sequence[WeightChange],
    report: Improvement,
    *,
    held: Sequence[Sequence[Tensor]],
    references: Sequence[Sequence[Tensor]],
) -> tuple[Improvement, WeightChange] | None:
    """The rounding that was kept, learned from all examples; None if there is no time, or if it got worse.

    Where examples are few, the quarter that judged the method is missed in learning.
    """
    left = job.max_seconds - report.seconds
    if report.after_db is None or left < 2 * report.seconds:
        return None
    started = time.monotonic()
    job.reporter.phase(Phase.COMPRESS, f"learning the rounding at {report.precision} from all examples")
    whole = replace(job, work=[*job.work, *held], max_seconds=left)
    change = learn_rounding(whole, list(changes[:-1]))
    if isinstance(change, NoChange):
        return None
    seen_db = job.simulator([*changes[:-1], change]).fidelity_db(job.plan, held, references)
    if seen_db < report.after_db:
        return None
    seconds = round(report.seconds + time.monotonic() - started, 3)
    reason = f"{report.reason}; learned again with {'these' if len(held) > 1 else 'this'}"
    return msgspec.structs.replace(report, reason=reason, seconds=seconds), change


def _problem(plan: BoundPlan, examples: Sequence[Sequence[Tensor]]) -> str:
    if not plan.precisions - HIGH:
        return f"at {plan.plan.default} nothing is rounded to integers"
    if len(examples) < 2:
        return "it needs two calibration examples or more: some to work with, some to judge by"
    return ""


def _not_applied(method: ImproveMethod, precision: str, reason: str, *, before: float | None = None) -> Improvement:
    return Improvement(method=str(method), precision=precision, before_db=before, reason=reason)


def _try(
    job: ImproveJob,
    method: ImproveMethod,
    changes: list[WeightChange],
    *,
    before: float,
    held: Sequence[Sequence[Tensor]],
    references: Sequence[Sequence[Tensor]],
) -> tuple[Improvement, WeightChange | None]:
    """The outcome of one method, and its change if that is kept."""
    started = time.monotonic()
    precision = str(job.plan.plan.default)
    try:
        change = METHODS[method](job, changes)
        if isinstance(change, NoChange):
            return _not_applied(method, precision, change.reason, before=round(before, 3)), None
        after = job.simulator([*changes, change]).fidelity_db(job.plan, held, references)
    except SIMULATION_ERRORS as error:
        reason = f"the method failed: {message_of(error, limit=200) or type(error).__name__}"
        job.reporter.warn("not-improved", f"{method} was left out: {reason}", where="[improve] methods")
        return _not_applied(method, precision, reason, before=round(before, 3)), None
    kept = after >= before + SMALLEST_GAIN_DB
    words = "closer to the original" if kept else "no closer to the original"
    report = Improvement(
        method=str(method),
        precision=precision,
        before_db=round(before, 3),
        after_db=round(after, 3),
        kept=kept,
        reason=f"{words} on {len(held)} calibration example{'s' if len(held) > 1 else ''} that it did not see",
        ops=changed_ops(job.captured, [change]),
        seconds=round(time.monotonic() - started, 3),
    )
    return report, change if kept else None
