"""The order of the steps of one compression job."""

from __future__ import annotations

import msgspec
import torch

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.pipeline.builders import Builders, BuildJob
from ace_studio.engine.pipeline.compress.batches import measure_batches
from ace_studio.engine.pipeline.compress.bench import Bench, state_bytes
from ace_studio.engine.pipeline.compress.candidates import first_plans, select_targets
from ace_studio.engine.pipeline.compress.choosing import Outcome, conclude
from ace_studio.engine.pipeline.compress.decoding import measure_decoding
from ace_studio.engine.pipeline.compress.improving import ranges_of
from ace_studio.engine.pipeline.compress.metric import baseline_facts
from ace_studio.engine.pipeline.compress.plans import try_plans
from ace_studio.engine.pipeline.compress.profiling import profile_all
from ace_studio.engine.pipeline.compress.saving import export_all
from ace_studio.engine.pipeline.compress.sensitivity import sense_once
from ace_studio.engine.pipeline.compress.timing import measure_latency
from ace_studio.engine.pipeline.compress.worst import find_worst
from ace_studio.engine.pipeline.sensitivity import scanned_precisions
from ace_studio.engine.targets import TARGETS
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ScanChoice


def run_job(bench: Bench) -> Outcome:
    """Go through the steps; a target that fails is a failed run, not a failed job."""
    _check_goal(bench)
    targets = select_targets(bench.recipe.targets.names, TARGETS)
    threads_before = torch.get_num_threads()
    torch.set_num_threads(bench.threads)
    bench.builders = _builders_for(bench)
    try:
        _measure_baseline(bench)
        _check_calibration(bench)
        if bench.recipe.sensitivity.scan is ScanChoice.ON:
            sense_once(bench, scanned_precisions(bench.recipe))
        try_plans(bench, targets)
        measure_latency(bench)
        measure_batches(bench)
        measure_decoding(bench)
        export_all(bench)
        profile_all(bench)
        find_worst(bench)
        return conclude(bench)
    finally:
        if bench.builders is not None:
            bench.builders.close()
        torch.set_num_threads(threads_before)


def _builders_for(bench: Bench) -> Builders | None:
    """What can build beside this process: whole graphs of torch modules, on the CPU; a GPU's memory is not shared."""
    captured = bench.captured
    if not isinstance(captured, CapturedModel) or bench.loaded.frontend != "torch" or captured.device.type != "cpu":
        return None
    return Builders(
        BuildJob(
            captured=captured,
            calibration=bench.calibration,
            threads=bench.threads,
            ranges=ranges_of(bench),
            folder=bench.output / ".builds",
            reporter=bench.reporter,
            weight_bytes=state_bytes(captured.module),
        )
    )


def _check_goal(bench: Bench) -> None:
    if bench.recipe.goal.max_drop is not None and bench.loaded.evaluate is None:
        raise AceError.of(
            ErrorCode.NO_DATA,
            "The goal limits the drop of the metric, but there is no metric",
            why="[goal] max_drop needs a metric, and [evaluate] names neither a function nor a metric with data",
            remedy="Name one of them in [evaluate], or use min_sqnr_db, which needs no labels.",
            where="[goal] max_drop",
        )


def _measure_baseline(bench: Bench) -> None:
    """Size and metric of the eager module; its latency is measured with the candidates'."""
    score = bench.score_of(bench.reference, what=bench.baseline.name)
    bench.baseline_score = score
    size = state_bytes(bench.reference)
    bench.baseline = msgspec.structs.replace(bench.baseline, size_bytes=size, **baseline_facts(score))
    bench.tell_baseline()


def _check_calibration(bench: Bench) -> None:
    """Read the calibration data before anything is built: if it is no good, no target can do without it."""
    if bench.loaded.calibration is not None and any(plan.needs_calibration for plan in first_plans(bench.recipe)):
        bench.calibration()
