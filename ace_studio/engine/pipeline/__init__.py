"""The order of the stages; the only package that knows all of them.

One function per request of the border: `inspect`, `doctor`, `trace`, `run`. The Python function `ace_studio.compile`
enters at `capture` and `compress` with a module that is already alive.
"""

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import torch
from filelock import FileLock, Timeout

from ace_studio.engine.advice import Facts, advise
from ace_studio.engine.capture import refuse_counting
from ace_studio.engine.environment import environment_report
from ace_studio.engine.examples.from_norms import examples_from_norms
from ace_studio.engine.flow import AnyCapture, Example, LoadedModel
from ace_studio.engine.load import files_sha256, inspect_file, load_model
from ace_studio.engine.metrics import Score
from ace_studio.engine.pipeline.catching import catch_inputs
from ace_studio.engine.pipeline.compress import CompressionJob, Outcome, run_stages
from ace_studio.engine.pipeline.compress.calibration import read_calibration
from ace_studio.engine.pipeline.compress.job import TRACING_EXAMPLES
from ace_studio.engine.pipeline.compress.metric import with_metric
from ace_studio.engine.pipeline.fixes.run import FixJob
from ace_studio.engine.pipeline.frontends import FRONTENDS
from ace_studio.engine.pipeline.preparing import Prepared, check_subgraphs, prepare_model, preview_pruning
from ace_studio.engine.pipeline.process_state import in_folder
from ace_studio.engine.pipeline.ready import ReadyModel, make_ready
from ace_studio.engine.pipeline.sensitivity import scan_folder, scanned_precisions, sense
from ace_studio.engine.pipeline.values import LastModel, Watched
from ace_studio.engine.progress import Reporter
from ace_studio.engine.report import write_report
from ace_studio.engine.targets import report_refusals, report_targets
from ace_studio.records import messages
from ace_studio.records.advice_applied import outcome_of
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.plan_index import PlanIndex
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureAttempt, CaptureReport, Result
from ace_studio.records.safe_file import make_output_folder
from ace_studio.records.system_faults import system_problem
from ace_studio.records.tensors import MADE_UP, read_values

_TURN_CHECK_S = 1.0
MAX_SOURCE_BYTES = 2_000_000
"""Source files larger than this are not sent to the window."""


def inspect(request: messages.InspectRequest, reporter: Reporter) -> None:
    """Inspect a file without running any code in it."""
    reporter.phase(messages.Phase.LOAD, Path(request.path).name)
    reporter.emit(messages.FileInspected(job=request.job, report=inspect_file(Path(request.path))))


def doctor(request: messages.DoctorRequest, reporter: Reporter) -> None:
    """Report what is installed in this interpreter."""
    reporter.phase(messages.Phase.START, "looking at this machine")
    reporter.emit(messages.EnvironmentFound(job=request.job, report=environment_report(report_targets())))


def trace(request: messages.TraceRequest, reporter: Reporter) -> None:
    """Load and capture, in the recipe's folder: user code may name files relative to it."""
    with in_folder(request.folder):
        ready = make_ready(load_requested(request, reporter), request.recipe, Path(request.folder), reporter=reporter)
        capture(ready, request.recipe, reporter=reporter, rungs_done=request.rungs_done)
    reporter.emit(messages.JobFinished(job=request.job))


def sensitivity(request: messages.SensitivityRequest, reporter: Reporter) -> None:
    """Load, capture and scan; findings are sent as they come, and stored so that a later job need not scan again."""
    with in_folder(request.folder):
        recipe = request.recipe
        ready = make_ready(load_requested(request, reporter), recipe, Path(request.folder), reporter=reporter)
        captured, _ = capture(ready, recipe, reporter=reporter, rungs_done=request.rungs_done)
        data, samples = ready.loaded.data, recipe.sensitivity.samples
        asked = tuple(Precision(word) for word in request.precisions) or scanned_precisions(recipe)
        with torch.no_grad():
            sense(
                captured,
                recipe,
                lambda: read_calibration(data, captured, samples=samples, reporter=reporter),
                precisions=asked,
                reporter=reporter,
                folder=scan_folder(None),
            )
    reporter.emit(messages.JobFinished(job=request.job))


_last_model = LastModel()


def values(request: messages.ValuesRequest, reporter: Reporter) -> None:
    """Compute what one op gives; the model stays loaded until another job comes."""
    recipe, folder = request.recipe, Path(request.folder)

    def open_model() -> tuple[Watched, tuple[Path, ...]]:
        ready = make_ready(load_requested(request, reporter), recipe, folder, reporter=reporter)
        captured, _ = _captured(ready, recipe, reporter, request.rungs_done)
        return Watched(captured, ready.loaded.data), tuple(Path(one).absolute() for one in ready.loaded.files)

    with in_folder(folder), torch.no_grad():
        model = _last_model.get(request, open_model)
        found = model.values(request, reporter)
    fingerprint = model.captured.fingerprint
    reporter.emit(messages.ValuesFound(job=request.job, fingerprint=fingerprint, values=found))


def run(request: messages.RunRequest, reporter: Reporter) -> None:
    """Everything, in the recipe's folder, and the result written to ``request.output``."""
    output = Path(request.output).absolute()
    make_output_folder(output)
    with in_folder(request.folder), in_turn(reporter, request.timing_lock):
        result = _run_in_folder(request, output, reporter)
    reporter.emit(messages.JobFinished(job=request.job, result=result, output=str(output)))


def _run_in_folder(request: messages.RunRequest, output: Path, reporter: Reporter) -> Result:
    started, recipe = time.monotonic(), request.recipe
    loaded = load_requested(request, reporter)
    folder = Path(request.folder)
    ready = make_ready(loaded, recipe, folder, reporter=reporter, must_fit=True)
    prepared = prepare_model(ready, recipe, reporter=reporter)
    ready = prepared.ready
    captured, report = capture(ready, recipe, reporter=reporter, rungs_done=request.rungs_done)
    outcome = compress(
        ready.loaded,
        captured,
        report,
        recipe=recipe,
        output=output,
        reporter=reporter,
        score=ready.score,
        lost=request.targets_lost,
    )
    if _files_changed(loaded):
        reporter.warn("files-changed", "A file of the model changed while the job ran; the result may mix two versions")
    result = msgspec.structs.replace(
        with_change_reports(outcome.result, prepared),
        seconds=time.monotonic() - started,
        phase_seconds=reporter.seconds_by_phase(),
        warnings=tuple(reporter.warnings),
        recipe=recipe_text(recipe),
        folder=str(folder.absolute()),
    )
    reporter.phase(messages.Phase.ADVISE)
    result = with_advice(result, recipe, captured.table)
    reporter.phase(messages.Phase.REPORT, str(output))
    return _written(result, captured.table, output)


def _written(result: Result, table: GraphTable, output: Path) -> Result:
    """Write the files of the result. What cannot be written does not end a finished run: the history gets it."""
    try:
        write_report(result, table, output)
    except OSError as error:
        fault = system_problem(error)
        problem = Problem(
            code=ErrorCode.SYSTEM,
            what="The files of the result could not be written",
            why=fault.what if fault else str(error),
            remedy=fault.remedy if fault else "Name a folder that you may write to",
            where=str(output),
        )
        return msgspec.structs.replace(result, error=result.error or problem)
    return result


def with_change_reports(result: Result, prepared: Prepared) -> Result:
    """The result with the reports of pruning and fine-tuning."""
    pruning = prepared.pruning
    if pruning is not None and result.baseline is not None:
        pruning = msgspec.structs.replace(pruning, metric_before=result.baseline.metric)
    return msgspec.structs.replace(result, pruning=pruning, finetune=prepared.finetune)


def preview_prune(request: messages.PrunePreviewRequest, reporter: Reporter) -> None:
    """Prune a copy and report what was removed; nothing is captured or built."""
    with in_folder(request.folder):
        ready = make_ready(load_requested(request, reporter), request.recipe, Path(request.folder), reporter=reporter)
        report = preview_pruning(ready, request.recipe, reporter=reporter)
    reporter.emit(messages.PruningPreviewed(job=request.job, report=report))


def _files_changed(loaded: LoadedModel) -> bool:
    try:
        return files_sha256(loaded.files) != loaded.sha256
    except AceError:  # one of them cannot be read any more
        return True


def load_requested(request: messages.TraceRequest, reporter: Reporter) -> LoadedModel:
    """Load the model that a request names, within the trust that it carries."""
    reporter.phase(messages.Phase.LOAD, Path(request.recipe.model.source).name)
    _last_model.forget()
    trusted = frozenset(request.trusted_sha256)
    return load_model(
        request.recipe,
        Path(request.folder),
        is_trusted=lambda sha256: request.trust_all or sha256 in trusted,
        reporter=reporter,
    )


def fix(request: messages.FixRequest, reporter: Reporter) -> None:
    """Try fixes for the places where the capture stops, each in a copy; the user's files are unchanged."""
    folder, recipe = Path(request.folder), request.recipe
    with in_folder(folder):
        loaded = load_requested(request, reporter)
        place = (request.file, request.line)
        for one in fixes(
            loaded, recipe, folder, reporter=reporter, place=place, reload=lambda to: load_requested(request, to)
        ):
            reporter.emit(messages.FixTried(job=request.job, fix=one))
    reporter.emit(messages.JobFinished(job=request.job))


def fixes(
    loaded: LoadedModel,
    recipe: Recipe,
    folder: Path,
    *,
    reporter: Reporter,
    place: tuple[str, int] = ("", 0),
    reload: Callable[[Reporter], LoadedModel] | None = None,
) -> Iterator[FixReport]:
    """Try fixes for one place (file and line), or for every place where the capture stops, one by one.

    Without ``reload``, which loads the model anew, only controls are tried: the source of a live module stays as it is.
    """
    job = FixJob(
        ready=make_ready(loaded, recipe, folder, reporter=reporter),
        recipe=recipe,
        folder=folder.absolute(),
        reporter=reporter,
        reload=reload,
    )
    job.prepare()
    yield from job.run(*place)


def capture(
    ready: ReadyModel, recipe: Recipe, *, reporter: Reporter, rungs_done: tuple[CaptureAttempt, ...] = ()
) -> tuple[AnyCapture, CaptureReport]:
    """Capture the graph, and send it.

    ``rungs_done`` are outcomes of an engine process that ended under the last of them.
    """
    captured, report = _captured(ready, recipe, reporter, rungs_done)
    reporter.emit(
        messages.ModelCaptured(
            job=reporter.job,
            fingerprint=captured.fingerprint,
            capture=report,
            graph=captured.table,
            sources=read_sources(captured.table.files),
            refusals=report_refusals(captured.table.op[row] for row in captured.table.op_rows()),
        )
    )
    return captured, report


def _captured(
    ready: ReadyModel, recipe: Recipe, reporter: Reporter, rungs_done: tuple[CaptureAttempt, ...] = ()
) -> tuple[AnyCapture, CaptureReport]:
    with torch.no_grad():
        frontend = FRONTENDS[ready.loaded.frontend]
        return frontend.capture(ready.loaded, ready.examples, recipe, ready.device, reporter, rungs_done)


def compress(
    loaded: LoadedModel,
    captured: AnyCapture,
    report: CaptureReport,
    *,
    recipe: Recipe,
    output: Path,
    reporter: Reporter,
    score: Score | None = None,
    lost: Mapping[str, Problem] | None = None,
) -> Outcome:
    """Plan, compress, lower, check, evaluate, measure, export and choose.

    ``score`` is the original's, if known; ``lost`` are the targets that crashed an earlier process of this job.

    Raises: AceError(NOT_CAPTURED) if the results depend on an attribute that every call changes.
    """
    refuse_counting(report)
    frontend = FRONTENDS[loaded.frontend]
    recipe = frontend.fit_recipe(recipe)
    loaded = with_metric(loaded, captured, recipe, Path.cwd())
    loaded, calibrated_on = _with_calibration(loaded, captured, recipe, reporter)
    check_subgraphs(loaded, captured)
    for match in PlanIndex(captured.table).idle_rules(recipe.plan):
        reporter.warn("idle-rule", f"The rule '{match}' matches no op of the model", where="[[plan.rules]]")
    with torch.no_grad():
        job = CompressionJob.of(
            loaded,
            captured,
            report,
            recipe=recipe,
            output=output,
            reporter=reporter,
            baseline=frontend.baseline,
            shared=frontend.shared(captured),
        )
        job.state.baseline_score, job.state.lost, job.state.calibrated_on = score, lost or {}, calibrated_on
        return run_stages(job)


def _with_calibration(
    loaded: LoadedModel, captured: AnyCapture, recipe: Recipe, reporter: Reporter
) -> tuple[LoadedModel, str]:
    """The model with examples made from its batch norms, where the plan needs ranges and all its inputs are made up.

    And what ranges are found on other than calibration data.
    """
    if loaded.data.calibration is not None:
        return loaded, ""
    are_made_up = [read_values(spec.values).source in MADE_UP for row in recipe.inputs.rows for spec in row.values()]
    if not recipe.inputs.rows and loaded.data.tracing is None and loaded.data.tracing_path is None:
        are_made_up = [loaded.data.are_made_up]
    if not any(are_made_up):
        return loaded, TRACING_EXAMPLES
    examples = []
    if all(are_made_up) and (recipe.plan.needs_calibration or recipe.improve.methods):
        reporter.phase(messages.Phase.CALIBRATE)
        examples = examples_from_norms(loaded.module, captured.given_examples, reporter.advance)
    if not examples:
        return loaded, "made-up numbers"
    how = "made-up numbers that resemble what its batch norms saw in training"
    return loaded.with_data(calibration=lambda: examples), how


def read_sources(files: tuple[str, ...]) -> dict[str, str]:
    """Text of the user's source files that ops point to; files that are gone or huge are left out."""
    sources = {}
    for name in files:
        path = Path(name)
        if path.is_file() and path.stat().st_size <= MAX_SOURCE_BYTES:
            sources[name] = path.read_text(encoding="utf-8", errors="replace")
    return sources


def with_advice(result: Result, recipe: Recipe, table: GraphTable) -> Result:
    """The result with its advice cards, and the outcome of the card that the recipe was made from."""
    facts = Facts(
        result=result,
        recipe=recipe,
        table=table,
        targets=report_targets(),
        cores=os.cpu_count() or 1,
        has_pruning_library=importlib.util.find_spec("torch_pruning") is not None,
    )
    return msgspec.structs.replace(result, advice=advise(facts), advice_from=outcome_of(recipe.advice_from, result))


@contextmanager
def in_turn(reporter: Reporter, path: str) -> Iterator[None]:
    """Hold the lock of this file during every phase `Phase.MEASURE` of the body: jobs on one machine measure in turn.

    An empty path is no lock. A lock that cannot be opened, as in a contained process, is no lock either: it protects
    figures, not data.
    """
    if not path:
        yield
        return
    lock = FileLock(path)

    def began(phase: Phase) -> None:
        if phase is not Phase.MEASURE:
            lock.release()
        elif not lock.is_locked:
            _take(lock, reporter)

    reporter.phase_began = began
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, reporter: Reporter) -> None:
    while True:
        try:
            lock.acquire(timeout=0 if reporter.is_cancelled else _TURN_CHECK_S)
        except Timeout:
            reporter.advance(None, "waiting while another job measures on this machine")
        except OSError:
            return
        else:
            return
