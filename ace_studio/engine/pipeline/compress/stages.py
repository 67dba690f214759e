"""The order of the stages of a compression job."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import msgspec
import torch
from torch import Tensor

from ace_studio.engine import evaluate
from ace_studio.engine.examples.fitting import size_problem
from ace_studio.engine.export import prepare_verification
from ace_studio.engine.flow import Captured, Example
from ace_studio.engine.flow.module_state import state_put_back
from ace_studio.engine.fresh import Preparation
from ace_studio.engine.pipeline.builders import Builders, BuildJob
from ace_studio.engine.pipeline.compress.building import expect_builds
from ace_studio.engine.pipeline.compress.calibration import warn_about_calibration
from ace_studio.engine.pipeline.compress.candidates import (
    Candidate,
    first_plans,
    keeps_accuracy,
    not_searched,
    original_target,
)
from ace_studio.engine.pipeline.compress.choosing import Outcome, conclude, unfinished
from ace_studio.engine.pipeline.compress.decoding import measure_decoding, step_model
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.job import CompressionJob, bound_call, state_bytes, timed_call
from ace_studio.engine.pipeline.compress.metric import baseline_facts
from ace_studio.engine.pipeline.compress.profiling import profile_all
from ace_studio.engine.pipeline.compress.proving import SHARE, require_alive, seconds_so_far
from ace_studio.engine.pipeline.compress.saving import export_all
from ace_studio.engine.pipeline.compress.search.run import GoalSearch
from ace_studio.engine.pipeline.compress.sensitivity import sense_once
from ace_studio.engine.pipeline.compress.timing import measure_latency
from ace_studio.engine.pipeline.compress.trying import try_plan
from ace_studio.engine.pipeline.sensitivity import scanned_precisions
from ace_studio.engine.plan import plan_problem
from ace_studio.engine.profile.worst import worst_of_outputs, worst_of_scores
from ace_studio.engine.report import write_figures
from ace_studio.engine.targets import select_targets
from ace_studio.engine.targets.base import Lowered, Target
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import ScanChoice
from ace_studio.records.results import BatchThroughput
from ace_studio.records.system_faults import missing_room, temporary_folder


def run_stages(job: CompressionJob) -> Outcome:
    """Run all stages; a target that fails is a failed run, not a failed job.

    The figures are written before and after the artifacts are saved, so that they outlive this process.
    """
    targets = select_targets(job.recipe.targets.names)
    _check_room(job, targets)
    threads_before = torch.get_num_threads()
    torch.set_num_threads(job.threads)
    builders, verifier = _builders_for(job), _verifier_for(job, targets)
    job = replace(job, builders=builders, verifier=verifier)
    try:
        step_model(job.captured, job.recipe.measure.decode)  # refuses unknown names before anything is built
        require_alive(job)
        _measure_baseline(job)
        _check_calibration(job)
        if job.recipe.sensitivity.scan is ScanChoice.ON:
            found = scanned_precisions(job.recipe)
            sense_once(job, [one for one in found if job.state.has_data or not one.needs_calibration])
        try_plans(job, targets)
        with float_references(job) as references, state_put_back(job.reference):
            measure_latency(job, references)
            measure_batches(job)
        measure_decoding(job)
        for save in (lambda _: None, export_all):
            save(job)
            with suppress(OSError):  # a full disk is told when the result is written
                write_figures(unfinished(job), job.output)
        profile_all(job)
        find_worst(job)
        return conclude(job)
    finally:
        if verifier is not None:
            verifier.close()
        if builders is not None:
            builders.close()
        torch.set_num_threads(threads_before)


def _builders_for(job: CompressionJob) -> Builders | None:
    """Processes that build beside this one: for whole torch graphs on the CPU; a GPU's memory is not shared."""
    captured = job.captured.torch_graph
    if captured is None or captured.device.type != "cpu":
        return None
    return Builders(
        BuildJob(
            captured=captured,
            calibration=job.calibration,
            threads=job.threads,
            ranges=ranges_of(job.recipe),
            sizes=job.recipe.targets.sizes,
            folder=job.output / ".builds",
            reporter=job.reporter,
            weight_bytes=state_bytes(captured.module),
        )
    )


def _verifier_for(job: CompressionJob, targets: Sequence[Target]) -> Preparation | None:
    """The process that will verify the artifacts on the CPU: it imports torch while the job builds."""
    if job.captured.device.type != "cpu":
        return None
    return prepare_verification(list({name for target in targets for name in target.row.opening_imports}))


LEAST_ROOM_BYTES = 1_000_000
"""For the result and the report."""
SCRATCH_BYTES = 50_000_000
"""For what a compiler and a verifying process write into the temporary folder."""
_SMALLEST_PART = 8
"""Weights of four bits take this part of their size in float."""


def _check_room(job: CompressionJob, targets: Sequence[Target]) -> None:
    """Compare the free space with what the artifacts will take, before minutes are spent.

    Raises: AceError(SYSTEM) if not even the smallest artifact would fit.
    """
    weights = state_bytes(job.reference)
    if figures := missing_room(job.output, weights // _SMALLEST_PART + LEAST_ROOM_BYTES):
        remedy = "Make room there, or name another folder with --out (in the window: Settings > Folder of the runs)"
        raise AceError.of(ErrorCode.SYSTEM, "The disk is too full for this run", why=figures, remedy=remedy)
    count = len(targets) * len(first_plans(job.recipe, has_data=job.state.has_data))
    for folder, needed in ((job.output, count * weights + LEAST_ROOM_BYTES), (temporary_folder(), SCRATCH_BYTES)):
        if figures := missing_room(folder, needed):
            job.reporter.warn("disk-space", f"The disk may become full: {figures}", where=str(folder))


def _measure_baseline(job: CompressionJob) -> None:
    """Size and metric of the eager module; its latency is measured with the candidates'."""
    score = job.state.baseline_score or job.score_of(job.reference, what=job.state.baseline.name)
    job.state.baseline_score = score
    size = state_bytes(job.reference)
    job.state.baseline = msgspec.structs.replace(job.state.baseline, size_bytes=size, **baseline_facts(score))
    job.tell_baseline()


def _check_calibration(job: CompressionJob) -> None:
    """Read the calibration data before anything is built, so that an error in them ends the job early."""
    if job.loaded.data.calibration is not None and any(
        plan.needs_calibration for plan in first_plans(job.recipe, has_data=job.state.has_data)
    ):
        warn_about_calibration(job.calibration(), job.loaded.data.evaluate, job.reporter)


def try_plans(job: CompressionJob, targets: Sequence[Target]) -> None:
    """Try the recipe's plan on every target; search if the goal decides the plan, or if no run is accurate enough."""
    recipe = job.recipe
    searched = [target for target in targets if not target.run_problem()]
    if recipe.plan.from_goal and recipe.goal.has_bound:
        job.state.candidates += [not_searched(target) for target in targets if target not in searched]
        GoalSearch(job).run(searched)
    else:
        pairs = list(itertools.product(targets, first_plans(recipe, has_data=job.state.has_data)))
        expect_builds(job, pairs)
        for target, plan in pairs:
            try_plan(job, target, plan)
        if not recipe.plan.from_goal and recipe.goal.bounds_accuracy and not _is_any_accurate(job):
            GoalSearch(job).run(searched)
    if not job.state.candidates:
        job.state.candidates = job.state.left_out
        job.reporter.warn("nothing-fits", "No target could run the plan; each run says why")
        return
    tried = {one.target.name for one in job.state.candidates}
    for target, reason in {one.target: plan_problem(one.plan) for one in job.state.left_out}.items():
        has_precision = any(
            not target.precision_problem(plan.default) for plan in first_plans(recipe, has_data=job.state.has_data)
        )
        if reason and has_precision and target.name not in tried:
            job.reporter.warn("target-left-out", f"auto does not use {target.label}: {reason}")


def _is_any_accurate(job: CompressionJob) -> bool:
    return any(keeps_accuracy(candidate, job.state.baseline, job.recipe.goal) for candidate in job.state.candidates)


_MAX_EXAMPLES = 32


def find_worst(job: CompressionJob) -> None:
    """Fill ``job.state.worst`` for every run that is alive."""
    if not job.recipe.measure.profile:
        return
    job.reporter.phase(Phase.EVALUATE, "the examples that lose most")
    references: list[list[Tensor]] = []

    def one_run(job: CompressionJob, candidate: Candidate) -> None:
        run = job.state.candidates.index(candidate)
        if job.state.baseline_score is not None and candidate.score is not None:
            found = worst_of_scores(job.state.baseline_score, candidate.score, run=run)
            if found or job.state.baseline_score.loss is not None:
                job.state.worst += tuple(found)
                return
        source, examples = _examples(job)
        if len(examples) < 2:
            return
        if not references:
            references.extend(evaluate.eager_outputs(job.reference, examples))
        outputs = [_outputs(job, candidate, example) for example in examples]
        job.state.worst += tuple(worst_of_outputs(references, outputs, run=run, source=source))

    for candidate in job.state.running:
        job.has_figure(candidate, one_run, figure="worst examples")


def _outputs(job: CompressionJob, candidate: Candidate, example: Example) -> list[Tensor]:
    assert candidate.lowered is not None
    job.reporter.check()
    return evaluate.flat_outputs(candidate.lowered, example)


def _examples(job: CompressionJob) -> tuple[str, Sequence[Example]]:
    if job.loaded.data.calibration is not None:
        fitting = [one for one in job.calibration() if not size_problem(one, job.captured)]
        return "calibration", fitting[:_MAX_EXAMPLES]
    return "tracing", job.captured.given_examples[:_MAX_EXAMPLES]


LONGEST_TIMING_S = 10.0
"""fp32 of a target is not timed beside its compressed candidates where its rounds would take longer, or `SHARE`."""


@contextmanager
def float_references(job: CompressionJob) -> Iterator[dict[str, Lowered]]:
    """Target -> its exact build, for targets with a compressed candidate and no fp32 one, where timing it is cheap."""
    known = {one.run.target for one in job.state.running if one.run.precision == Precision.FP32}
    if job.loaded.original is None:
        known.add(original_target(job.loaded.frontend))
    wanted = {one.run.target for one in job.state.running} - known
    exact = {name: one.exact for name, one in job.state.proofs.items() if name in wanted and one.exact is not None}
    job.state.proofs.clear()
    try:
        yield {name: lowered for name, lowered in exact.items() if _is_soon_timed(job, lowered)}
    finally:
        exact.clear()


def _is_soon_timed(job: CompressionJob, lowered: Lowered) -> bool:
    started = time.monotonic()
    bound_call(job.captured.examples[0], lowered)()
    most_s = max(LONGEST_TIMING_S, SHARE * seconds_so_far(job))
    return 2 * (time.monotonic() - started) * job.recipe.measure.rounds <= most_s


_MAX_ROUNDS = 10


def measure_batches(job: CompressionJob) -> None:
    """Measure the baseline and every candidate at the recipe's batch sizes, interleaved per size."""
    sizes = job.recipe.measure.batches
    if not sizes:
        return
    symbol = batch_symbol(job.captured)
    if not symbol:
        job.reporter.warn(
            "static-batch",
            "The throughput over batch sizes was not measured: the first dimension of the first input is fixed",
            where="[measure] batches",
        )
        return
    for size in sizes:
        _measure_one(job, with_batch(job.captured, symbol, size), size)


def batch_symbol(captured: Captured) -> str:
    """Symbol of the first dimension of the first input; empty if that is fixed."""
    dims = captured.dynamic_dims()
    return dims[0].get(0, "") if dims else ""


def with_batch(captured: Captured, symbol: str, size: int) -> Example:
    """The first example with every dimension of this symbol at ``size``, its content repeated or cut."""
    dims = iter(captured.dynamic_dims())

    def resized(tensor: Tensor) -> Tensor:
        for index, found in next(dims).items():
            if found == symbol:
                rows = torch.arange(size, device=tensor.device) % tensor.shape[index]
                tensor = tensor.index_select(index, rows)
        return tensor

    return captured.examples[0].map_tensors(resized)


def _measure_one(job: CompressionJob, example: Example, size: int) -> None:
    job.reporter.phase(Phase.MEASURE, f"batch {size}")
    calls: dict[str, Callable[[], object]] = {}
    alive = []
    for candidate in job.state.running:
        call = timed_call(example, candidate.lowered)
        once = lambda _job, _candidate, call=call: call()  # noqa: E731 - bound to this call
        if job.has_figure(candidate, once, figure=f"throughput at batch {size}"):
            alive.append(candidate)
            calls[f"{candidate.label} #{len(alive)}"] = call
    calls = {job.state.baseline.name: timed_call(example, job.reference), **calls}
    samples = job.timed(calls, rounds=min(_MAX_ROUNDS, job.recipe.measure.rounds))
    found = [_throughput(size, one.latency().p50) for one in samples.values()]
    job.state.baseline = msgspec.structs.replace(
        job.state.baseline, throughput=(*job.state.baseline.throughput, found[0])
    )
    job.tell_baseline()
    for candidate, one in zip(alive, found[1:], strict=True):
        candidate.note(throughput=(*candidate.run.throughput, one))
        job.tell(candidate)


def _throughput(batch: int, latency_ms: float) -> BatchThroughput:
    return BatchThroughput(batch=batch, latency_ms=latency_ms, samples_per_s=round(batch / latency_ms * 1e3, 3))
