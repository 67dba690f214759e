"""The session: the only owner of the document. Verbs come from the window, events from the engine.

Everything here runs on one thread (the window's main thread) and returns at once; waiting is the engine's part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import (
    JOB_ENDS,
    AnyEvent,
    AnyRequest,
    DoctorRequest,
    FileInspected,
    InspectRequest,
    JobFailed,
    JobFinished,
    LogLine,
    RunRequest,
    TraceRequest,
    WorkerLost,
    WorkerReady,
)
from ace_studio.records.plan import Precision, rule_problem
from ace_studio.records.recipe import CaptureChoice, Goal, MeasureChoice, ModelChoice, Recipe
from ace_studio.records.recipe_file import read_recipe, recipe_text, write_recipe
from ace_studio.records.tensors import DimChoice, TensorSpec
from ace_studio.session import choices
from ace_studio.session.artifacts import copy_artifact
from ace_studio.session.autosave import Autosave, SavedChoices
from ace_studio.session.document import Activity, Document, EngineState, Part, Verb, changed_parts
from ace_studio.session.findings import apply_finding, with_problems, without_runs
from ace_studio.session.folders import UserFolders
from ace_studio.session.history import History
from ace_studio.session.recipe_paths import code_files, rebase_recipe, relative_to
from ace_studio.session.settings import Settings, Value
from ace_studio.session.trust import TrustStore, file_sha256
from ace_studio.session.undo import UndoStack

Listener = Callable[[Document, frozenset[Part]], None]


class EngineLink(Protocol):
    """What the session needs of the engine. Events come back through `Session.apply`."""

    def send(self, request: AnyRequest) -> None:
        """Send a request. The session sends one at a time, and only after WorkerReady."""

    def cancel(self, job: str) -> None:
        """Stop the job: ask first, then end the process."""

    def restart(self) -> None:
        """Start a new engine process (ending the old one); WorkerReady follows."""


class Session:
    """The user's work: choices with undo, findings, and the conversation with the engine.

    Every verb ends by telling the listeners the new document and the parts of it that changed. What goes wrong
    becomes a problem in the document; verbs do not raise.
    """

    def __init__(
        self,
        engine: EngineLink,
        *,
        folders: UserFolders,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or Settings(folders.settings)
        self.history = History(folders.history)
        self.trust = TrustStore(folders.trust)
        self._autosave = Autosave(folders.autosave)
        self._folders = folders
        self._engine = engine
        self._clock = clock
        self._undo = UndoStack(clock)
        self._saved = Recipe()
        self._listeners: list[Listener] = []
        self._current: AnyRequest | None = None
        self._waiting: list[AnyRequest] = []
        self._prefill = False
        self._refused: Verb = Verb.NONE
        self._was_ready = False
        self._jobs = 0
        self._document = Document(recent_files=self.settings.recent_files)

    @property
    def document(self) -> Document:
        """What there is now."""
        return self._document

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # --- opening, saving ---

    def open_path(self, path: str | Path) -> None:
        """Open a recipe (``.toml``), or a model file, about which the engine is then asked. Undo starts anew."""
        file = Path(path).expanduser().absolute()
        with self._problems():
            if not file.exists():
                raise AceError.of(
                    ErrorCode.NOT_FOUND,
                    f"There is no {file.name}",
                    why=f"{file} does not exist",
                    remedy="Check the path, or open the file with the dialog",
                )
            if file.suffix == ".toml":
                self._open(read_recipe(file), folder=file.parent, recipe_path=file)
            else:
                self._open(Recipe(model=ModelChoice(source=file.name)), folder=file.parent, recipe_path=None)
            with self._problems():
                self.settings.add_recent(str(file))
            self._change(recent_files=self.settings.recent_files)

    def forget_recent(self, path: str) -> None:
        """Take a path out of the recent files."""
        with self._problems():
            self.settings.forget_recent(path)
        self._change(recent_files=self.settings.recent_files)

    def save_recipe(self, path: str | Path | None = None) -> bool:
        """Save the choices to where they came from, or to a new file. Returns whether that worked."""
        saved = False
        with self._problems():
            target = Path(path).expanduser().absolute() if path else Path(self._document.recipe_path)
            if not path and not self._document.recipe_path:
                raise AceError.of(ErrorCode.USAGE, "The recipe has no file yet", remedy="Choose a name for it: Save as")
            recipe = rebase_recipe(self._document.recipe, Path(self._document.folder), target.parent)
            write_recipe(recipe, target)
            self._moved_to(recipe, target)
            saved = True
        return saved  # noqa: RET504 - set only if nothing went wrong in the block

    def restorable(self) -> tuple[SavedChoices, ...]:
        """Unsaved choices of windows that crashed, newest first."""
        return self._autosave.left_behind()

    def restore(self, saved: SavedChoices) -> None:
        """Go on with the choices of a window that crashed. They count as unsaved."""
        recipe = saved.recipe()
        if recipe is None:
            return
        path = Path(saved.recipe_path) if saved.recipe_path else None
        self._open(recipe, folder=Path(saved.folder), recipe_path=path)
        self._saved = Recipe()
        self._autosave.discard_left_behind()
        self._change(is_dirty=True)
        self._keep()

    def discard_restorable(self) -> None:
        """Forget the choices of windows that crashed."""
        self._autosave.discard_left_behind()

    def close(self) -> None:
        """The window closes cleanly: nothing is left to restore."""
        self._autosave.clear()

    def trust_file(self) -> None:
        """Remember that the opened file, as it is, may run; then go on with what was refused for it, if anything.

        Files of ours that the recipe names beside it (a factory, weights) are included: they run together.
        """
        report = self._document.file
        with self._problems():
            if report is not None and report.sha256:
                self.trust.trust(report.path, report.sha256)
            for file in code_files(self._document.recipe, Path(self._document.folder)):
                with suppress(OSError):
                    self.trust.trust(str(file), file_sha256(file))
            kept = tuple(one for one in self._document.problems if one.code is not ErrorCode.UNTRUSTED)
            self._change(is_trusted=True, needs_trust=False, problems=kept)
            refused, self._refused = self._refused, Verb.NONE
            if refused is Verb.TRACE:
                self.trace()
            elif refused is Verb.RUN:
                self.run()

    # --- choices ---

    def set_entry(self, name: str) -> None:
        """The callable that makes the model."""
        self._choose("entry", choices.change(self._document.recipe, "model", entry=name), subject="entry")

    def set_weights(self, path: str) -> None:
        """The state dict to load into the model; empty for none."""
        relative = relative_to(Path(path), Path(self._document.folder)) if path else ""
        self._choose("weights", choices.change(self._document.recipe, "model", weights=relative))

    def set_rows(self, rows: Sequence[dict[str, TensorSpec]]) -> None:
        """The rows of the shape table."""
        changed = choices.change(self._document.recipe, "inputs", rows=tuple(rows))
        self._choose("example shapes", changed, subject="rows")

    def set_dim(self, name: str, choice: DimChoice) -> None:
        """What one dimension (``x.0``) should be."""
        self._choose(f"{name} {choice}", choices.with_dim(self._document.recipe, name, choice), subject=f"dim {name}")

    def set_tracing(self, name: str) -> None:
        """The callable that gives the examples to trace with; empty for the rows."""
        self._choose("tracing inputs", choices.change(self._document.recipe, "inputs", tracing=name), subject="tracing")

    def set_capture(self, capture: CaptureChoice) -> None:
        """The rungs to try, their time limit, and the controls."""
        self._choose("capture options", replace(self._document.recipe, capture=capture), subject="capture")

    def set_default_precision(self, precision: Precision) -> None:
        """The precision of every op that no rule names."""
        changed = choices.with_default_precision(self._document.recipe, precision)
        self._choose(f"default precision {precision}", changed)

    def set_plan_from_goal(self, from_goal: bool) -> None:
        """Whether the goal chooses the precisions."""
        label = "precisions from the goal" if from_goal else "precisions by hand"
        self._choose(label, choices.change(self._document.recipe, "plan", from_goal=from_goal))

    def set_rule(self, match: str, precision: Precision) -> None:
        """A rule such as ``module:layer1.*``; it goes to the end, where it wins."""
        fault = rule_problem(match)
        if fault:
            self._report(Problem(code=ErrorCode.RECIPE, what=fault, remedy="Write for example module:layer1.*"))
            return
        changed = choices.with_rules(self._document.recipe, (match,), precision)
        self._choose(f"{precision} for {match}", changed, subject=f"rule {match}")

    def remove_rule(self, match: str) -> None:
        """Remove the rules with these very words."""
        self._choose(f"remove {match}", choices.with_rules(self._document.recipe, (match,), None))

    def set_precision_of_ops(self, op_ids: Sequence[str], precision: Precision | None) -> None:
        """The precision of these very ops; None removes their own rules again."""
        matches = choices.op_matches(op_ids)
        count = "1 op" if len(matches) == 1 else f"{len(matches)} ops"
        label = f"{precision} for {count}" if precision else f"no own precision for {count}"
        self._choose(label, choices.with_rules(self._document.recipe, matches, precision))

    def set_targets(self, names: Sequence[str]) -> None:
        """The targets to lower to; none means ``auto``."""
        names = tuple(dict.fromkeys(names)) or ("auto",)
        self._choose("targets", choices.change(self._document.recipe, "targets", names=names))

    def set_goal(self, goal: Goal) -> None:
        """What the result must satisfy."""
        self._choose("goal", replace(self._document.recipe, goal=goal), subject="goal")

    def set_measure(self, measure: MeasureChoice) -> None:
        """Threads, rounds and device."""
        self._choose("how to measure", replace(self._document.recipe, measure=measure), subject="measure")

    def set_calibration(self, *, inputs: str | None = None, samples: int | None = None) -> None:
        """The callable that gives calibration inputs, and how many to use; None leaves a value as it is."""
        values = {key: value for key, value in (("inputs", inputs), ("samples", samples)) if value is not None}
        self._choose("calibration", choices.change(self._document.recipe, "calibration", **values), subject="calib")

    def set_evaluate(self, *, function: str | None = None, higher_is_better: bool | None = None) -> None:
        """The user's metric, and its direction; None leaves a value as it is."""
        pairs = (("function", function), ("higher_is_better", higher_is_better))
        values = {key: value for key, value in pairs if value is not None}
        self._choose("evaluation", choices.change(self._document.recipe, "evaluate", **values), subject="evaluate")

    def set_setting(self, key: str, value: Value) -> None:
        """Change a setting of the application; it is saved at once and is no undoable choice."""
        with self._problems():
            self.settings.set(key, value)
        self._tell(self._document, {Part.SETTINGS})

    def undo(self) -> None:
        """Take the last choice back. Findings stay."""
        self._set_recipe(self._undo.undo())

    def redo(self) -> None:
        """Put the choice back that was taken back last."""
        self._set_recipe(self._undo.redo())

    # --- the engine ---

    def trace(self) -> None:
        """Load and capture the model."""
        document = self._document
        if self._can_start():
            self._change(rungs=())
            self._submit(
                TraceRequest(
                    job=self._new_job(Verb.TRACE),
                    recipe=document.recipe,
                    folder=document.folder,
                    trusted_sha256=self.trust.hashes,
                )
            )

    def run(self, output: str | Path | None = None) -> None:
        """Everything: capture, compress, lower, measure, evaluate, export into ``output`` (or a new folder)."""
        if self._can_start():
            self._document_to(without_runs(replace(self._document, rungs=())))
            self._submit(
                RunRequest(
                    job=self._new_job(Verb.RUN),
                    recipe=self._document.recipe,
                    folder=self._document.folder,
                    trusted_sha256=self.trust.hashes,
                    output=str(Path(output).expanduser().absolute() if output else self._new_output()),
                )
            )

    def cancel(self) -> None:
        """Stop what the engine is doing, and forget what waits for it."""
        self._waiting.clear()
        activity = self._document.activity
        if self._current is None:
            idle = Activity(state=activity.state)
            self._change(activity=idle)
        elif activity.state is not EngineState.CANCELLING:
            self._change(activity=replace(activity, state=EngineState.CANCELLING, detail="", fraction=None))
            self._engine.cancel(self._current.job)

    def request_environment(self) -> None:
        """Ask the engine what its interpreter has; the answer is `Document.environment`."""
        self._submit(DoctorRequest(job=self._new_job(Verb.ENVIRONMENT)))

    def restart_engine(self) -> None:
        """Start a new engine process: another interpreter was chosen, or the old one could not be started."""
        job = self._current
        self._current = None
        self._was_ready = False
        if isinstance(job, InspectRequest | DoctorRequest):
            self._waiting.insert(0, job)
        self._change(activity=Activity(state=EngineState.STARTING))
        self._engine.restart()

    # --- looking ---

    def select(self, op_ids: Sequence[str]) -> None:
        """Select ops, everywhere at once. Ids that the graph does not have are left out."""
        known: Collection[str] = self._document.graph.op_id if self._document.graph else ()
        known = frozenset(known)
        chosen = tuple(op_id for op_id in dict.fromkeys(op_ids) if op_id in known)
        if chosen != self._document.selection.op_ids:
            self._change(selection=replace(self._document.selection, op_ids=chosen))

    def select_run(self, index: int | None) -> None:
        """Select a target run; None selects none."""
        if index is not None and not 0 <= index < len(self._document.runs):
            index = None
        if index != self._document.selection.run:
            self._change(selection=replace(self._document.selection, run=index))

    def dismiss_problem(self, index: int) -> None:
        """Take a problem off the list."""
        left = tuple(one for place, one in enumerate(self._document.problems) if place != index)
        self._change(problems=left)

    def clear_log(self) -> None:
        """Empty the log."""
        self._change(log=())

    def export_artifact(self, run_index: int, destination: str | Path) -> tuple[Path, ...]:
        """Copy a run's artifact to a file or folder, with its checksum beside it; returns the files written."""
        written: tuple[Path, ...] = ()
        with self._problems():
            runs = self._document.runs
            artifact = runs[run_index].artifact if 0 <= run_index < len(runs) else None
            if not artifact:
                raise AceError.of(
                    ErrorCode.NOT_FOUND,
                    "This run has no artifact",
                    why="Its target failed, or keeps nothing on disk",
                    remedy="Choose a run whose status is ok",
                )
            source = Path(self._document.output) / artifact
            written = tuple(copy_artifact(source, Path(destination).expanduser().absolute()))
        return written  # noqa: RET504 - set only if nothing went wrong in the block

    # --- events ---

    def apply(self, event: AnyEvent) -> None:
        """Take in an event of the engine. Late events of a job that has ended change nothing but the history."""
        match event:
            case LogLine():
                self._change(log=(*self._document.log, event.text)[-int(self.settings.get("log_lines")) :])
            case WorkerReady():
                self._ready()
            case WorkerLost():
                self._lost(event)
            case _ if self._current is not None and event.job == self._current.job:
                self._take_in(self._current, event)
            case JobFinished():
                self._file(event, self._document.recipe)
            case _:
                pass  # an answer that nobody waits for any more

    def _take_in(self, request: AnyRequest, event: AnyEvent) -> None:
        recipe = request.recipe if isinstance(request, TraceRequest) else self._document.recipe
        document = apply_finding(self._document, event, asked_with=recipe)
        if isinstance(event, JOB_ENDS):
            self._current = None
            document = replace(document, activity=Activity(state=EngineState.IDLE))
        self._document_to(document)
        match event:
            case FileInspected():
                self._inspected(event)
            case JobFailed():
                self._failed(request, event)
            case JobFinished():
                self._file(event, recipe)
            case _:
                pass
        self._send_next()

    def _inspected(self, event: FileInspected) -> None:
        report = event.report
        is_trusted = report.trust != "code" or self.trust.is_trusted(report.sha256)
        needs_trust = not is_trusted and (self._document.needs_trust or report.trust == "code")
        recipe = choices.prefill(self._document.recipe, report) if self._prefill else self._document.recipe
        if self._prefill:
            # What the file itself makes plain is part of opening it, not a choice to undo.
            self._saved = recipe
        self._prefill = False
        self._change(
            file=report, is_trusted=is_trusted, needs_trust=needs_trust, recipe=recipe, is_dirty=recipe != self._saved
        )

    def _failed(self, request: AnyRequest, event: JobFailed) -> None:
        if not any(problem.code is ErrorCode.UNTRUSTED for problem in event.problems):
            return
        self._refused = _verb_of(request)
        self._change(needs_trust=True, is_trusted=False)
        # The file may have changed since it was inspected; trust is about what is there now.
        self._inspect_source()

    def _file(self, event: JobFinished, recipe: Recipe) -> None:
        """Put a finished run into the history."""
        if event.result is not None:
            with self._problems():
                title = self._document.title or event.job
                self.history.add(event.result, recipe_toml=recipe_text(recipe), title=title, output=event.output)

    def _ready(self) -> None:
        self._was_ready = True
        if self._current is None:
            self._change(activity=Activity(state=EngineState.IDLE))
        self._send_next()

    def _lost(self, event: WorkerLost) -> None:
        """The process is gone: say so, and start another, unless it never even came up."""
        self._current = None
        was_ready, self._was_ready = self._was_ready, False
        if event.problem.code is not ErrorCode.CANCELLED:
            self._report(event.problem)
        if was_ready:
            self._change(activity=Activity(state=EngineState.STARTING))
            self._engine.restart()
        else:
            self._waiting.clear()
            self._change(activity=Activity(state=EngineState.LOST))

    # --- inside ---

    def _open(self, recipe: Recipe, *, folder: Path, recipe_path: Path | None) -> None:
        if self._current is not None or self._waiting:
            self.cancel()
        self._undo.clear()
        self._saved = recipe
        self._prefill = recipe_path is None
        self._refused = Verb.NONE
        old = self._document
        self._document_to(
            Document(
                recipe=recipe,
                recipe_path=str(recipe_path or ""),
                folder=str(folder),
                activity=old.activity,
                log=old.log,
                environment=old.environment,
                recent_files=old.recent_files,
            )
        )
        self._inspect_source()

    def _inspect_source(self) -> None:
        source = self._document.recipe.model.source
        if source:
            path = str(Path(self._document.folder) / source)
            self._submit(InspectRequest(job=self._new_job(Verb.INSPECT), path=path))

    def _moved_to(self, recipe: Recipe, target: Path) -> None:
        """The choices now live in another file; earlier ones must name files from there too."""
        old_folder = Path(self._document.folder)
        self._undo.rewrite(lambda earlier: rebase_recipe(earlier, old_folder, target.parent))
        self._undo.break_merge()
        self._saved = recipe
        captured, ran = (
            found and rebase_recipe(found, old_folder, target.parent)
            for found in (self._document.captured_with, self._document.ran_with)
        )
        self._autosave.clear()
        self._change(
            recipe=recipe,
            recipe_path=str(target),
            folder=str(target.parent),
            is_dirty=False,
            captured_with=captured,
            ran_with=ran,
        )

    def _choose(self, label: str, recipe: Recipe, *, subject: str = "") -> None:
        if recipe == self._document.recipe:
            return
        self._undo.push(label, self._document.recipe, recipe, subject=subject)
        self._set_recipe(recipe)

    def _set_recipe(self, recipe: Recipe | None) -> None:
        if recipe is not None:
            self._change(
                recipe=recipe,
                is_dirty=recipe != self._saved,
                undo_label=self._undo.undo_label,
                redo_label=self._undo.redo_label,
            )
            self._keep()

    def _keep(self) -> None:
        document = self._document
        if document.is_dirty:
            self._autosave.write(
                document.recipe, folder=document.folder, recipe_path=document.recipe_path, now_s=time.time()
            )
        else:
            self._autosave.clear()

    def _can_start(self) -> bool:
        if not self._document.recipe.model.source:
            self._report(
                Problem(code=ErrorCode.USAGE, what="No model is open", remedy="Open a model file or a recipe first")
            )
            return False
        if self._document.activity.is_working:
            self._report(
                Problem(
                    code=ErrorCode.USAGE,
                    what=f"The engine is busy with a {self._document.activity.verb}",
                    remedy="Wait until it is done, or cancel it",
                )
            )
            return False
        self._undo.break_merge()
        return True

    def _submit(self, request: AnyRequest) -> None:
        self._waiting.append(request)
        if self._document.activity.state is EngineState.LOST:
            self.restart_engine()
        elif self._was_ready:
            self._send_next()
        if self._current is None and self._waiting:
            self._change(activity=self._activity_of(self._waiting[-1], EngineState.STARTING))

    def _send_next(self) -> None:
        if self._current is None and self._waiting and self._was_ready:
            self._current = self._waiting.pop(0)
            self._change(activity=self._activity_of(self._current, EngineState.BUSY))
            self._engine.send(self._current)

    def _activity_of(self, request: AnyRequest, state: EngineState) -> Activity:
        return Activity(state=state, job=request.job, verb=_verb_of(request), started_s=self._clock())

    def _new_job(self, verb: Verb) -> str:
        self._jobs += 1
        return f"{verb}-{self._jobs}"

    def _new_output(self) -> Path:
        folder = str(self.settings.get("runs_folder"))
        runs = Path(folder).expanduser() if folder else self._folders.runs
        stem = Path(self._document.title).stem or "run"
        first = runs / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{stem}"
        others = (first.with_name(f"{first.name}-{number}") for number in range(2, 1000))
        return next(path for path in (first, *others) if not path.exists())

    def _report(self, *problems: Problem) -> None:
        self._document_to(with_problems(self._document, *problems))

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """What goes wrong inside becomes problems of the document."""
        try:
            yield
        except AceError as error:
            self._report(*error.problems)

    def _change(self, **values: Any) -> None:
        self._document_to(replace(self._document, **values))

    def _document_to(self, document: Document) -> None:
        document = replace(document, undo_label=self._undo.undo_label, redo_label=self._undo.redo_label)
        parts = changed_parts(self._document, document)
        self._document = document
        if parts:
            self._tell(document, parts)

    def _tell(self, document: Document, parts: Collection[Part]) -> None:
        for listener in tuple(self._listeners):
            listener(document, frozenset(parts))


def _verb_of(request: AnyRequest) -> Verb:
    match request:
        case InspectRequest():
            return Verb.INSPECT
        case DoctorRequest():
            return Verb.ENVIRONMENT
        case RunRequest():
            return Verb.RUN
        case TraceRequest():
            return Verb.TRACE
        case _:
            return Verb.NONE
