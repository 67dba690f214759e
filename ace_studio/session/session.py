"""The session: the only owner of the document. Verbs come from the window, events from the engine.

Everything here runs on one thread (the window's main thread) and returns at once; waiting is the engine's part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import (
    JOB_ENDS,
    AnyEvent,
    AnyRequest,
    CatchRequest,
    DoctorRequest,
    FileInspected,
    FixRequest,
    InputsCaught,
    InspectRequest,
    JobFailed,
    JobFinished,
    LogLine,
    PrunePreviewRequest,
    RunRequest,
    SensitivityRequest,
    TraceRequest,
    WorkerLost,
    WorkerReady,
)
from ace_studio.records.recipes.recipe import AdviceOrigin, Recipe
from ace_studio.session.artifacts import export_run
from ace_studio.session.choices import prefill
from ace_studio.session.document import Document, Part, changed_parts
from ace_studio.session.findings import (
    apply_finding,
    moved_to,
    with_failure,
    with_problems,
    without_rungs,
    without_runs,
)
from ace_studio.session.job_queue import EngineLink, JobQueue, start_problem, with_options
from ace_studio.session.kept.autosave import Autosave
from ace_studio.session.kept.folders import UserFolders, new_run_folder
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings, Value
from ace_studio.session.kept.trust import TrustStore, files_to_trust
from ace_studio.session.kept.undo import UndoStack
from ace_studio.session.recipe_paths import rebase_recipe
from ace_studio.session.verbs.advice import AdviceVerbs, without_origin
from ace_studio.session.verbs.catch import CatchVerbs
from ace_studio.session.verbs.choices import ChoiceVerbs
from ace_studio.session.verbs.files import FileVerbs
from ace_studio.session.verbs.fixes import FixVerbs
from ace_studio.session.verbs.history import HistoryVerbs
from ace_studio.session.verbs.looking import LookingVerbs
from ace_studio.session.verbs.plan import PlanVerbs
from ace_studio.session.verbs.sensitivity import SensitivityVerbs

__all__ = ["EngineLink", "Listener", "Session"]

Listener = Callable[[Document, frozenset[Part]], None]


class Session(
    FileVerbs, ChoiceVerbs, PlanVerbs, LookingVerbs, FixVerbs, SensitivityVerbs, AdviceVerbs, CatchVerbs, HistoryVerbs
):
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
        """The engine is expected to be starting already: its WorkerReady is awaited.

        Args:
            engine: where requests go.
            folders: where the user's settings, trust, history and runs are.
            settings: those of the window, if it has them already.
            clock: seconds that only grow.
        """
        self.settings = settings or Settings(folders.settings)
        self.history = History(folders.history)
        self.trust = TrustStore(folders.trust)
        self._autosave = Autosave(folders.autosave)
        self._runs_folder = folders.runs
        self._queue = JobQueue(engine, clock)
        self._undo = UndoStack(clock)
        self._saved = Recipe()
        self._listeners: list[Listener] = []
        self._opening_job = ""
        self._refused: Callable[[], None] | None = None
        self._document = Document(recent_files=self.settings.recent_files)

    @property
    def document(self) -> Document:
        """What there is now."""
        return self._document

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # --- choices as a whole ---

    def trust_file(self) -> None:
        """Remember that the files opened, as they are, may run; then go on with what was refused for them, if anything.

        That is the file that was inspected, and those that the engine asked trust for.
        """
        with self._problems():
            for path, sha256 in files_to_trust(self._document):
                self.trust.trust(path, sha256)
            kept = tuple(one for one in self._document.problems if one.code is not ErrorCode.UNTRUSTED)
            self._change(is_trusted=True, needs_trust=False, problems=kept)
            again, self._refused = self._refused, None
            if again is not None:
                again()

    def set_setting(self, key: str, value: Value) -> None:
        """Change a setting of the application; it is saved at once and is no undoable choice."""
        with self._problems():
            self.settings.set(key, value)
        self._tell({Part.SETTINGS})

    def undo(self) -> None:
        """Take the last choice back. Findings stay."""
        self._set_recipe(self._undo.undo())

    def redo(self) -> None:
        """Put the choice back that was taken back last."""
        self._set_recipe(self._undo.redo())

    # --- the engine ---

    def trace(self, *, anew: bool = False, compare_rungs: bool = False) -> None:
        """Load and capture the model.

        Args:
            anew: Do not take a capture that was kept.
            compare_rungs: Try every rung this time, to see what becomes of each.
        """
        if self._can_start():
            self._document_to(without_rungs(self._document))
            request = self._queue.trace_request(self._document, trusted=self.trust.hashes)
            self._submit(with_options(request, anew=anew, compare_rungs=compare_rungs))

    def run(self, output: str | Path | None = None) -> None:
        """Everything: capture, compress, lower, measure, evaluate, export into ``output`` (or a new folder)."""
        if self._can_start():
            folder = Path(output).expanduser().absolute() if output else self._new_folder()
            self._run_into(folder)

    def _run_into(self, folder: Path, origin: AdviceOrigin | None = None) -> None:
        self._document_to(without_runs(without_rungs(self._document), output=str(folder)))
        request = self._queue.run_request(self._document, trusted=self.trust.hashes)
        recipe = replace(request.recipe, advice_from=origin or AdviceOrigin())
        self._submit(replace(request, recipe=recipe))

    def _run_from(self, origin: AdviceOrigin) -> None:
        self._run_into(self._new_folder(), origin)

    def cancel(self) -> None:
        """Stop what the engine is doing, and forget what waits for it."""
        self._queue.cancel()
        self._show_activity()

    def request_environment(self) -> None:
        """Ask the engine what its interpreter has; the answer is `Document.environment`."""
        self._submit(DoctorRequest(job=self._queue.new_job(DoctorRequest)))

    def restart_engine(self) -> None:
        """Start a new engine process: another interpreter was chosen, or the old one is gone. A job is given up."""
        self._queue.restart()
        self._show_activity()

    def export_artifact(self, run_index: int, destination: str | Path) -> tuple[Path, ...]:
        """Copy a run's artifact to a file or folder, with its checksum beside it; returns the files written."""
        written: tuple[Path, ...] = ()
        with self._problems():
            written = export_run(self._document, run_index, Path(destination).expanduser().absolute())
        return written  # noqa: RET504 - set only if nothing went wrong in the block

    # --- events ---

    def apply(self, event: AnyEvent) -> None:
        """Take in an event of the engine. Late events of a job that has ended change nothing but the history."""
        request = self._queue.current
        match event:
            case LogLine(text=text):
                self._change(log=(*self._document.log, text)[-int(self.settings.get("log_lines")) :])
            case WorkerReady():
                self._queue.became_ready()
            case WorkerLost():
                if event.problem.code is not ErrorCode.CANCELLED:
                    self._report(event.problem)
                    job = request.job if request is not None else ""
                    self._document_to(with_failure(self._document, (event.problem,), job=job))
                self._queue.lost(event)
            case _ if request is not None and event.job == request.job:
                self._take_in(request, event)
            case JobFinished():
                self._file(event, self._document.recipe, folder=self._document.folder)
            case _:
                pass  # an answer that nobody waits for any more
        self._show_activity()

    def _take_in(self, request: AnyRequest, event: AnyEvent) -> None:
        """An event of the current job. Of a job that was abandoned, a finished run still goes into the history."""
        is_wanted = not self._queue.is_abandoned
        recipe = request.recipe if isinstance(request, TraceRequest) else self._document.recipe
        if is_wanted:
            self._document_to(apply_finding(self._document, event, asked_with=without_origin(recipe)))
        match event:
            case FileInspected() if is_wanted:
                self._inspected(event)
            case InputsCaught() if is_wanted:
                self._caught(event)
            case JobFailed() if is_wanted:
                self._failed(request, event)
            case JobFinished():
                folder = request.folder if isinstance(request, TraceRequest) else self._document.folder
                self._file(event, recipe, folder=folder)
            case _:
                pass
        if isinstance(event, JOB_ENDS):
            self._change(rung_at_work="")
            self._queue.ended()

    def _inspected(self, event: FileInspected) -> None:
        report = event.report
        recipe = self._document.recipe
        if event.job == self._opening_job:
            # What the file itself makes plain is part of opening it, not a choice to undo.
            recipe = self._saved = prefill(recipe, report)
        is_trusted = report.trust != "code" or self.trust.is_trusted(report.sha256)
        was_refused = any(problem.code is ErrorCode.UNTRUSTED for problem in self._document.problems)
        self._change(
            file=report,
            is_trusted=is_trusted and not was_refused,
            needs_trust=not is_trusted or was_refused,
            recipe=recipe,
            is_dirty=recipe != self._saved,
        )

    def _failed(self, request: AnyRequest, event: JobFailed) -> None:
        if any(problem.code is ErrorCode.UNTRUSTED for problem in event.problems):
            self._refused = self._again(request)
            self._change(needs_trust=True, is_trusted=False)
            # The file may have changed since it was inspected; trust is about what is there now.
            self._inspect_source()

    def _again(self, request: AnyRequest) -> Callable[[], None] | None:
        match request:
            case RunRequest(output=output):
                return lambda: self.run(output)
            case FixRequest(file=file, line=line):
                return lambda: self.try_fixes(file, line)
            case SensitivityRequest(precisions=precisions):
                return lambda: self.scan_sensitivity(precisions)
            case PrunePreviewRequest():
                return self.preview_pruning
            case CatchRequest(script=script, module=module, calls=calls, arguments=arguments):
                return lambda: self.catch_inputs(script, module, calls=calls, arguments=arguments)
            case TraceRequest():
                return self.trace
            case _:
                return None

    # --- inside ---

    def _open(self, recipe: Recipe, *, folder: Path, recipe_path: Path | None) -> None:
        self._queue.cancel(abandon=True)
        self._undo.clear()
        self._saved = recipe
        self._refused = None
        old = self._document
        self._document_to(
            Document(
                recipe=recipe,
                recipe_path=str(recipe_path or ""),
                folder=str(folder),
                activity=old.activity,
                log=old.log,
                environment=old.environment,
                history=old.history,
                recent_files=old.recent_files,
            )
        )
        self._autosave.clear()
        self._inspect_source(is_opening=recipe_path is None)

    def _inspect_source(self, *, is_opening: bool = False) -> None:
        """Ask what the source is. As a file is opened, the answer may fill in what is plain."""
        source = self._document.recipe.model.source
        if source:
            job = self._queue.new_job(InspectRequest)
            self._opening_job = job if is_opening else ""
            self._submit(InspectRequest(job=job, path=str(Path(self._document.folder) / source)))

    def _moved_to(self, recipe: Recipe, target: Path) -> None:
        """The choices now live in another file; earlier ones must name files from there too."""
        old_folder = Path(self._document.folder)
        self._undo.rewrite(lambda earlier: rebase_recipe(earlier, old_folder, target.parent))
        self._undo.break_merge()
        self._saved = recipe
        self._autosave.clear()
        self._document_to(moved_to(self._document, recipe, target))

    def _choose(self, label: str, recipe: Recipe, *, subject: str = "") -> None:
        if recipe != self._document.recipe:
            self._undo.push(label, self._document.recipe, recipe, subject=subject)
            self._set_recipe(recipe)

    def _set_recipe(self, recipe: Recipe | None) -> None:
        if recipe is not None:
            self._change(recipe=recipe, is_dirty=recipe != self._saved)
            self._keep()

    def _keep(self) -> None:
        """Keep unsaved choices, so that a crash does not lose them."""
        document = self._document
        if document.is_dirty:
            self._autosave.write(
                document.recipe, folder=document.folder, recipe_path=document.recipe_path, now_s=time.time()
            )
        else:
            self._autosave.clear()

    def _can_start(self) -> bool:
        problem = start_problem(self._document)
        if problem is not None:
            self._report(problem)
        self._undo.break_merge()
        return problem is None

    def _submit(self, request: AnyRequest) -> None:
        self._queue.submit(request)
        self._show_activity()

    def _show_activity(self) -> None:
        self._change(activity=self._queue.activity(self._document.activity))

    def _trusted(self) -> tuple[str, ...]:
        return self.trust.hashes

    def _new_folder(self) -> Path:
        chosen = str(self.settings.get("runs_folder"))
        return new_run_folder(Path(chosen).expanduser() if chosen else self._runs_folder, self._document.title)

    def report(self, problem: Problem) -> None:
        """Show a problem of the window itself."""
        self._report(problem)

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
            self._tell(parts)

    def _tell(self, parts: Collection[Part]) -> None:
        for listener in tuple(self._listeners):
            listener(self._document, frozenset(parts))
