"""The verbs that ask the engine for work: trace, run, fixes, sensitivity, pruning, caught inputs."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.advice_applied import applied_recipe
from ace_studio.records.errors import ErrorCode, explained
from ace_studio.records.fixes import FixReport
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import AdviceOrigin, EngineChoice, ModelChoice, Recipe
from ace_studio.records.safe_file import file_sha256, write_atomically
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.advice import without_origin
from ace_studio.session.choices import change, prefill
from ace_studio.session.document import JobKind, QueuedRun, QueueState
from ace_studio.session.findings import with_earlier_runs, without_rungs, without_runs
from ace_studio.session.job_queue import JobQueue, start_problem, with_options
from ace_studio.session.kept.folders import new_run_folder
from ace_studio.session.kept.settings import Settings
from ace_studio.session.kept.trust import TrustStore
from ace_studio.session.state import SessionState

RequestT = TypeVar("RequestT", bound=messages.TraceRequest)

CAUGHT_FOLDER = "caught"
"""Folder for caught inputs, beside the recipe or the model."""


class JobVerbs:
    """Starts and stops jobs of the engine. One job at a time: a verb that cannot start says so as a problem."""

    def __init__(
        self, state: SessionState, queue: JobQueue, *, trust: TrustStore, settings: Settings, runs_folder: Path
    ) -> None:
        self._state = state
        self._queue = queue
        self._trust = trust
        self._settings = settings
        self._runs_folder = runs_folder
        self._again: Callable[[], None] | None = None
        self._refused: Callable[[], None] | None = None
        self._run_ids = count(1)
        self._asked_engine = EngineChoice()
        self.on_give_up: Callable[[str], None] = lambda _: None
        """Called with the reason before the engine is ended with what it does."""
        self.opening_job = ""
        """The inspection whose answer may fill in the recipe; empty if there is none."""

    def trace(self, *, anew: bool = False, compare_rungs: bool = False) -> None:
        """Load and capture the model.

        Args:
            anew: Do not take a capture from the cache.
            compare_rungs: Try every capture method this time, for a comparison.
        """
        again = partial(self.trace, anew=anew, compare_rungs=compare_rungs)
        if not self._waits_for_file(JobKind.TRACE, again) and self._can_start():
            self._trace(anew=anew, compare_rungs=compare_rungs)

    def _trace(self, *, anew: bool = False, compare_rungs: bool = False) -> None:
        """Ask for a trace, after whatever goes on."""
        self._state.set_document(without_rungs(self._state.document))
        request = with_options(self._request(messages.TraceRequest), anew=anew, compare_rungs=compare_rungs)
        self._start(request, partial(self.trace, anew=anew, compare_rungs=compare_rungs))

    def run(self, output: str | Path | None = None) -> None:
        """Do everything: capture, compress, lower, measure, evaluate, export into ``output`` (or a new folder).

        While a job goes on, the run waits for its turn, with the choices of now.
        """
        document = self._state.document
        if self._waits_for_file(JobKind.RUN, partial(self.run, output)):
            return
        if document.activity.is_working and document.read_only is None:
            self._state.change(queue=(*document.queue, self._queued(document.recipe)))
        elif self._can_start():
            self._run_into(Path(output).expanduser().absolute() if output else self._new_folder())

    def unqueue(self, run_id: int) -> None:
        """Take a run that waits out of the queue."""
        kept = (one for one in self._state.document.queue if one.id != run_id or one.state is not QueueState.WAITING)
        self._state.change(queue=tuple(kept))

    def move_queued(self, run_id: int, by: int) -> None:
        """Let a run that waits change places with the ``by``-th one after it (before it, if negative)."""
        queue = list(self._state.document.queue)
        at = next((at for at, one in enumerate(queue) if one.id == run_id), -1)
        to = at + by
        if at >= 0 and 0 <= to < len(queue) and queue[at].state is queue[to].state is QueueState.WAITING:
            queue[at], queue[to] = queue[to], queue[at]
            self._state.change(queue=tuple(queue))

    def ended(self, request: messages.AnyRequest | None, state: QueueState) -> None:
        """A job has ended so: if it was a run, say it, and start the run that has waited longest."""
        document, queue = self._state.document, self._state.document.queue
        if document.wished and document.file is None and isinstance(request, messages.InspectRequest):
            self._forget_wish()
        if isinstance(request, messages.RunRequest):
            running = QueueState.RUNNING
            queue = tuple(replace(one, state=state) if one.state is running else one for one in queue)
            shown = self._state.document if state is QueueState.DONE else with_earlier_runs(self._state.document)
            self._state.set_document(replace(shown, queue=queue))
        waiting = next((one for one in queue if one.state is QueueState.WAITING), None)
        if waiting is not None and self._queue.is_idle:
            self._run_into(self._new_folder(), queued=waiting)

    def apply_advice(self, index: int) -> None:
        """Put the changes of an advice card into the choices and run them.

        The result compares itself with the card; the choices do not remember it, because later changes are not
        the card's.
        """
        result = self._state.document.result
        cards = result.advice if result is not None else ()
        if result is None or not 0 <= index < len(cards) or not self._can_start():
            return
        with self._state.reporting():
            changed = applied_recipe(without_origin(self._state.document.recipe), result, cards[index])
            self._state.choose(f"advice: {cards[index].title}", without_origin(changed))
            self._run_into(self._new_folder(), changed.advice_from)

    def try_fixes(self, file: str = "", line: int = 0) -> None:
        """Try the fixes for a place where capture stops (a graph break or a problem), or for all."""
        if self._can_start():
            others = (fix for fix in self._state.document.fixes if file and (fix.file, fix.line) != (file, line))
            self._state.change(fixes=tuple(others))
            self._start(self._request(messages.FixRequest, file=file, line=line), partial(self.try_fixes, file, line))

    def open_patched_copy(self, fix: FixReport) -> None:
        """Write a copy of the model's file with the fix in it, choose it instead of the file, and trace it.

        Undo chooses the file again. The copy is trusted, because it is the trusted file with the change that was shown.
        Fixes that are still being tried are not needed any more.
        """
        activity = self._state.document.activity
        is_trying = activity.verb is JobKind.FIX and activity.is_working
        if not is_trying and not self._can_start():
            return
        with self._state.reporting():
            document = self._state.document
            copy = write_patched_copy(Path(fix.file), fix.patch)
            if is_trying:
                self.cancel()
            self._trust.trust(str(copy), file_sha256(copy))
            source = relative_to(copy, Path(document.folder))
            self._state.choose("the patched copy", change(document.recipe, "model", source=source))
            self.inspect_source()
            self._trace()

    def scan_sensitivity(self, precisions: Sequence[str] = ()) -> None:
        """Measure how much each op, compressed alone, disturbs the outputs; findings are shown as they come."""
        if self._can_start():
            request = self._request(messages.SensitivityRequest, precisions=tuple(precisions))
            self._start(request, partial(self.scan_sensitivity, precisions))

    def preview_pruning(self) -> None:
        """Prune a copy as the recipe says, and report what is removed and how the outputs change."""
        if self._can_start():
            self._state.change(pruning=None)
            self._start(self._request(messages.PrunePreviewRequest), self.preview_pruning)

    def show_values(self, op_id: str, *, example: int = 0, save: str = "") -> None:
        """Compute what an op gives, in float and compressed as the selected run (else the plan) says.

        Args:
            op_id: Of the graph.
            example: Index among the examples that were traced.
            save: File (``.npz``) for the whole tensors; empty for none.
        """
        if self._can_start():
            document = self._state.document
            at = document.selection.run
            run = document.runs[at] if at is not None and at < len(document.runs) else None
            known = frozenset(Precision)
            request = self._request(
                messages.ValuesRequest,
                op_id=op_id,
                example=example,
                target=run.target if run is not None else "",
                assigned={op.id: op.actual if op.actual in known else op.planned for op in run.ops} if run else {},
                save=save,
            )
            self._start(request, partial(self.show_values, op_id, example=example, save=save))

    def catch_inputs(
        self, script: str | Path, module: str = "", *, calls: int = 8, arguments: Sequence[str] = ()
    ) -> None:
        """Run a script, and take the inputs that it calls a module with as the examples to trace with.

        Args:
            script: The ``.py`` file.
            module: A class, or a dotted path inside of the outermost module; empty for the outermost.
            calls: How many calls to keep at most.
            arguments: The script's command line arguments.
        """
        path = Path(script).expanduser().absolute()
        if self._can_start():
            request = messages.CatchRequest(
                job=self._queue.new_job(messages.CatchRequest),
                script=str(path),
                module=module,
                calls=calls,
                arguments=tuple(arguments),
                folder=str(path.parent),
                output=str(Path(self._state.document.folder) / CAUGHT_FOLDER / path.stem),
                trusted_sha256=self._trust.hashes,
            )
            self._start(request, partial(self.catch_inputs, script, module, calls=calls, arguments=arguments))

    def take_caught(self, event: messages.InputsCaught) -> None:
        """Choose the caught inputs: as rows where the shape table can show the calls, else as files."""
        self._state.change(caught=event)
        if event.problem is not None:
            self._state.report(event.problem)
        folder = Path(self._state.document.folder)
        rows = tuple({name: _moved(spec, folder) for name, spec in row.items()} for row in event.rows)
        caught = "" if rows else relative_to(Path(event.path), folder)
        changed = change(self._state.document.recipe, "inputs", tracing="", rows=rows, caught=caught)
        self._state.choose("caught inputs", changed)

    def capture_beside(self, file: Path, report: messages.FileReport | None, again: Callable[[], None]) -> str:
        """Ask what a file beside the open one is, or, with the answer, capture its model.

        Returns: the job; empty if none can start now.
        """
        request: messages.InspectRequest | messages.TraceRequest
        if report is not None:
            recipe = prefill(Recipe(model=ModelChoice(source=file.name)), report)
            request = replace(self._request(messages.TraceRequest), recipe=recipe, folder=str(file.parent))
        elif self._can_start():
            request = messages.InspectRequest(job=self._queue.new_job(messages.InspectRequest), path=str(file))
        else:
            return ""
        self._start(request, again)
        return request.job

    def may_connect(self) -> bool:
        """Whether the user let the recipe use the host that it names; opening a stranger's connects to nobody."""
        host, folder = self._state.document.recipe.engine.host, self._state.document.folder
        return not host or host in self._settings.word.hosts or self._trust.sends_to(host, folder)

    def request_environment(self) -> None:
        """Ask the recipe's engine what its interpreter has; the answer is `Document.environment`."""
        engine = self._state.document.recipe.engine
        if engine != self._asked_engine:
            self._state.change(environment=None)  # of another machine
            self._asked_engine = engine
        self._submit(messages.DoctorRequest(job=self._queue.new_job(messages.DoctorRequest), engine=engine))

    def inspect_source(self, *, is_opening: bool = False) -> None:
        """Ask what the source is. When a file is opened, the answer may fill in what is plain."""
        document = self._state.document
        if document.recipe.model.source:
            job = self._queue.new_job(messages.InspectRequest)
            self.opening_job = job if is_opening else ""
            self._submit(
                messages.InspectRequest(job=job, path=str(Path(document.folder) / document.recipe.model.source))
            )

    def cancel(self, *, abandon: bool = False) -> None:
        """Stop what the engine is doing and drop the requests that wait.

        With ``abandon``, when another model is opened, the history takes what was measured; later findings are dropped.
        """
        if self._state.document.wished and not abandon:
            self._forget_wish()  # it has not begun, and the look at the file goes on
            return
        if abandon:
            self.on_give_up("another model was opened")
            self._forget_wish()
        self._queue.cancel(abandon=abandon)
        self.show_activity()

    def restart_engine(self) -> None:
        """Start a new engine process, for example after another interpreter was chosen. The current job is given up."""
        self.on_give_up("the engine was started anew")
        given_up = self._queue.current
        self._queue.restart()
        self.ended(given_up, QueueState.CANCELLED)
        self.show_activity()

    def refused(self) -> None:
        """Remember that the engine refused the current job for want of trust: it is wished for until then."""
        self._refused = self._again
        self._state.change(wished=self._state.document.activity.verb)

    def retry_refused(self) -> None:
        """Start the job again that was refused for want of trust, or asked for before the file was known, if any."""
        again = self._refused
        self._forget_wish()
        if again is not None:
            again()

    def with_wish_kept(self, opening: Callable[[], None]) -> None:
        """Open the code of the open weights; what was asked for of these is asked for of the code."""
        wish = self._refused if self._state.document.wished else None
        opening()
        if wish is not None:
            wish()

    def _forget_wish(self) -> None:
        self._refused = None
        self._state.change(wished=JobKind.NONE)

    def _waits_for_file(self, verb: JobKind, again: Callable[[], None]) -> bool:
        """Whether nothing is known of the file yet: the job starts once it is, and may run."""
        is_early = self._state.document.is_looked_at
        if is_early:
            self._refused = again
            self._state.change(wished=verb)
        return is_early

    def show_activity(self) -> None:
        """Put the state of the queue into the document."""
        self._state.change(activity=self._queue.activity(self._state.document.activity))

    def _queued(self, recipe: Recipe) -> QueuedRun:
        return QueuedRun(id=next(self._run_ids), recipe=recipe)

    def _run_into(self, folder: Path, origin: AdviceOrigin | None = None, *, queued: QueuedRun | None = None) -> None:
        """Run the choices of now, or those of a run that waited."""
        document = without_runs(without_rungs(self._state.document), output=str(folder))
        waited = document.queue if any(one.state is QueueState.WAITING for one in document.queue) else ()
        run = replace(queued or self._queued(document.recipe), state=QueueState.RUNNING)
        queue = [run if one.id == run.id else one for one in waited]
        self._state.set_document(replace(document, queue=tuple(queue if run in queue else [*queue, run])))
        request = self._request(messages.RunRequest, output=str(folder))
        recipe = replace(run.recipe, advice_from=origin or AdviceOrigin())
        self._start(replace(request, recipe=recipe), partial(self._run_into, folder, origin, queued=run))

    def _can_start(self) -> bool:
        problem = start_problem(self._state.document)
        if problem is not None:
            self._state.report(problem)
        self._state.undo_stack.break_merge()
        return problem is None

    def _request(self, kind: type[RequestT], **values: Any) -> RequestT:
        document = self._state.document
        return kind(
            job=self._queue.new_job(kind),
            recipe=document.recipe,
            folder=document.folder,
            trusted_sha256=self._trust.hashes,
            word=self._settings.word,
            **values,
        )

    def _start(self, request: messages.AnyRequest, again: Callable[[], None]) -> None:
        self._again = again
        self._submit(request)

    def _submit(self, request: messages.AnyRequest) -> None:
        self._queue.submit(request)
        self.show_activity()

    def _new_folder(self) -> Path:
        chosen = str(self._settings.get("runs_folder"))
        return new_run_folder(Path(chosen).expanduser() if chosen else self._runs_folder, self._state.document.title)


def _moved(spec: TensorSpec, folder: Path) -> TensorSpec:
    return replace(spec, values=relative_to(Path(spec.values), folder))


def write_patched_copy(file: Path, patch: str) -> Path:
    """Write the patched text to a new file beside the old one, and return its path.

    Raises: AceError(BAD_FILE) if the file is not as it was when the fix was tried; AceError(NOT_FOUND) if it cannot be
    read or the copy cannot be written.
    """
    from ace_studio.records.patches import apply_patch  # noqa: PLC0415 - not needed for the first picture

    changed = "The file is not as it was when the fix was tried"
    lost = f"The patched copy of {file.name} could not be written"
    with (
        explained(ErrorCode.BAD_FILE, changed, remedy="Try the fix again", of=ValueError),
        explained(ErrorCode.NOT_FOUND, lost, remedy="Save the patch elsewhere, and apply it by hand"),
    ):
        text = apply_patch(file.read_bytes().decode(), patch)
        names = (file.with_name(f"{file.stem}_fixed{number or ''}{file.suffix}") for number in range(1000))
        copy = next(name for name in names if not name.exists())
        write_atomically(copy, text.encode())
    return copy
