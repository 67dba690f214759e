"""The verbs about past runs: list them, look at one, name, tag and note them, forget some; runs that end are added."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import AnyRequest, JobFinished, RunRequest
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result, ResultStatus
from ace_studio.session.document import Selection
from ace_studio.session.kept.autosave import StartedRun, remove
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from ace_studio.session.kept.history import History, HistoryBusyError, RemovedRuns
from ace_studio.session.state import SessionState
from ace_studio.session.verbs.files import FileVerbs


class HistoryVerbs:
    """The runs that were made on this machine, by windows and by the command line."""

    def __init__(self, state: SessionState, store: History, graphs: KeptGraphs, files: FileVerbs) -> None:
        self._state = state
        self._files = files
        self.store = store
        self.graphs = graphs
        self._removed = RemovedRuns()
        self._queue = HistoryQueue(state, store)
        self._started: dict[str, tuple[StartedRun, Path | None]] = {}
        """The runs that go on, by their job, and the files that note them."""
        self._cut: dict[str, int] = {}
        """The records of those that ended without a result, by their job: the result may come late."""
        self.renamed: Callable[[int, str, str], None] = lambda *_: None
        """Called with the id of a run, what it was called and what it is called now."""

    @property
    def can_put_back(self) -> bool:
        """Whether runs were removed that can be put back."""
        return bool(self._removed.rows)

    def load_history(self) -> None:
        """Read the list of past runs, anew if it was read before."""
        self._queue.add(self._list, key="list")

    def remove_past_runs(self, run_ids: Sequence[int]) -> None:
        """Forget runs. What they wrote stays on disk."""
        self._change(self._remove, run_ids)

    def put_back(self) -> None:
        """Take back the last removal."""
        removed, self._removed = self._removed, RemovedRuns()
        self._change(self.store.put_back, removed)

    def set_tags(self, run_id: int, tags: Sequence[str]) -> None:
        """Replace the tags of a run."""
        self._change(self.store.set_tags, run_id, tags)

    def set_name(self, run_id: int, name: str) -> None:
        """Call a run so, here and where it is pinned; empty for no name."""
        self._change(self._set_name, run_id, name)

    def _set_name(self, run_id: int, name: str) -> None:
        before = next((run for run in self._state.document.history or () if run.id == run_id), None)
        self.store.set_name(run_id, name)
        if before is not None:
            after = replace(before, name=name)
            if (past := self._state.document.past) is not None and past.id == run_id:
                self._state.change(past=replace(past, name=name))
            self.renamed(run_id, before.label, after.label)

    def set_note(self, run_id: int, note: str) -> None:
        """Replace the note of a run."""
        self._change(self.store.set_note, run_id, note)

    def retry(self, *, wait_s: float | None = None) -> None:
        """Do what another program prevented so far by holding the history; the window calls this from time to time.

        At its end the window may wait for ``wait_s``.
        """
        self._queue.retry(wait_s=wait_s)

    def _remove(self, run_ids: Sequence[int]) -> None:
        self._removed = self.store.remove(run_ids)

    def _change(self, call: Callable[..., object], *arguments: object) -> None:
        self._queue.add(partial(call, *arguments))
        self._queue.add(self._list_again)

    def _list_again(self) -> None:
        if self._state.document.history is not None:
            self._list()

    def _list(self) -> None:
        self._state.change(history=self.store.list())

    def look_at_run(self, run_id: int) -> None:
        """Show a past run in all panels, read-only, until `leave_past_run`."""
        document = self._state.document
        with self._state.reporting():
            if document.activity.is_working:
                raise AceError.of(
                    ErrorCode.USAGE, "The engine is busy", remedy="Look at the run when it is done, or cancel it"
                )
            past = self.store.get(run_id)
            result = past.result
            recipe = parse_recipe(past.recipe_toml, name=f"recipe of run {run_id}")
            kept, present = self.graph_of(result.fingerprint), self._state.present
            is_same_model = (present.recipe.model, present.folder) == (recipe.model, past.folder)
            found = self._state.fresh(
                recipe,
                past=past.summary,
                folder=past.folder or document.folder,
                file=present.file if is_same_model else None,
                is_trusted=is_same_model and present.is_trusted,
                fingerprint=result.fingerprint,
                graph=kept.graph if kept else None,
                sources=kept.sources if kept else {},
                capture=result.capture,
                rungs=result.capture.rungs if result.capture else (),
                captured_with=recipe,
                baseline=result.baseline,
                runs=result.runs,
                run_numbers=tuple(range(len(result.runs))),
                result=result,
                pruning=result.pruning,
                output=past.summary.output,
                ran_with=recipe,
                selection=Selection(run=result.chosen),
                problems=() if result.error is None else (result.error,),
            )
            self._state.look_at(found)

    def graph_of(self, fingerprint: str) -> KeptGraph | None:
        """The graph with this fingerprint: the present one, or one that is kept."""
        present = self._state.present
        if fingerprint and present.graph is not None and present.fingerprint == fingerprint:
            return KeptGraph(present.graph, present.sources, present.capture)
        return self.graphs.find(fingerprint) if fingerprint else None

    def leave_past_run(self) -> None:
        """Show the present choices and findings again."""
        self._state.look_back()

    def open_past_run(self, run_id: int) -> None:
        """Open the choices of a past run as a recipe that has no file yet."""
        with self._state.reporting():
            past = self.store.get(run_id)
            if not past.folder:
                raise AceError.of(
                    ErrorCode.NOT_FOUND,
                    f"The record of run {run_id} does not name the folder of its model",
                    why="an earlier version of ACE Studio recorded it, without the folder",
                    remedy="open the model and run it again",
                )
            recipe = parse_recipe(past.recipe_toml, name=f"recipe of run {run_id}")
            self._files.open_recipe(recipe, folder=Path(past.folder), name=f"run {run_id} of {past.summary.date}")

    def run_sent(self, request: AnyRequest) -> None:
        """Note a run that starts, so that it is known if this window dies; other requests are ignored."""
        if isinstance(request, RunRequest) and request.job not in self._started:
            title = Path(request.recipe.model.source).name or request.job
            run = StartedRun.of(request.recipe, title=title, folder=request.folder, output=request.output)
            self._started[request.job] = run, self.store.started.note(run)

    def add_finished(self, event: JobFinished, recipe: Recipe, *, folder: str) -> None:
        """Put a finished run into the history."""
        _, note = self._started.pop(event.job, (None, None))
        if event.result is not None:
            title = Path(recipe.model.source).name or event.job
            text = recipe_text(recipe)
            add = partial(self.store.add, recipe_toml=text, title=title, output=event.output, folder=folder)
            if (cut := self._cut.pop(event.job, None)) is not None:
                self._change(self.store.remove, [cut])
            self._change(_then_remove, note, add, event.result)
            self._keep_graph(event.job, event.result.fingerprint)

    def add_unfinished(self, request: AnyRequest | None, problem: Problem, *, is_shown: bool) -> None:
        """Put a run into the history that ended without a result; other requests are ignored.

        Args:
            request: what has ended.
            problem: why.
            is_shown: whether the document holds what was found until then.
        """
        run, note = self._started.pop(request.job, (None, None)) if request is not None else (None, None)
        if run is not None and request is not None:
            # Figures that the engine wrote have the fingerprint of the job, by which the graph is looked up.
            measured = run.figures() or (self._measured(request.job) if is_shown else None)
            self._change(_then_remove, note, self._add_cut, request.job, run, problem, measured)
            if measured is not None and is_shown:
                self._keep_graph(request.job, measured.fingerprint)

    def _add_cut(self, job: str, run: StartedRun, problem: Problem, measured: Result | None) -> None:
        if (added := self.store.add_unfinished(run, problem, measured)) is not None:
            self._cut[job] = added

    def _measured(self, job: str) -> Result:
        """What the document holds of a run that goes on."""
        document = self._state.document
        is_captured = document.graph_job == job
        return Result(
            status=ResultStatus.FAILED,
            fingerprint=document.fingerprint if is_captured else "",
            environment={},
            capture=document.capture if is_captured else None,
            baseline=document.baseline,
            runs=document.runs,
        )

    def _keep_graph(self, job: str, fingerprint: str) -> None:
        document = self._state.document
        if document.graph is not None and document.graph_job == job and fingerprint:
            with self._state.reporting():
                self.graphs.keep(fingerprint, KeptGraph(document.graph, document.sources, document.capture))


def _then_remove(note: Path | None, call: Callable[..., object], *arguments: object) -> None:
    """Add a run: it is in the history now, or waits in a file of the history, so its note is not needed any more."""
    try:
        call(*arguments)
    finally:
        remove(note)


_BUSY = Problem(
    code=ErrorCode.NOT_FOUND,
    what="The history of runs is in use by another program",
    why="Past runs cannot be read, and runs that end now wait to be added",
    remedy="It is tried again every second. If this stays, end the program that holds the history",
)


class HistoryQueue:
    """Makes each call now, or as soon as no other program holds the history, in their order."""

    def __init__(self, state: SessionState, store: History) -> None:
        self._state = state
        self._store = store
        self._calls: dict[object, Callable[[], object]] = {}

    def add(self, call: Callable[[], object], *, key: object = None) -> None:
        """Make this call, now or later; of one ``key`` (by default the call itself) only the last one waits."""
        was_empty = not self._calls
        self._calls.pop(key or call, None)
        self._calls[key or call] = call
        if was_empty:
            self.retry()
        if self._calls and not any(one is _BUSY for one in self._state.document.problems):
            self._state.change(history_waits=True)
            self._state.report(_BUSY)

    def retry(self, *, wait_s: float | None = None) -> None:
        """Make the calls that wait; each waits ``wait_s`` for the other program, if that is given."""
        self._store.wait_s = wait_s or self._store.wait_s
        while self._calls:
            key, call = next(iter(self._calls.items()))
            with self._state.reporting():
                try:
                    call()
                except HistoryBusyError:
                    return
            del self._calls[key]
        if self._state.document.history_waits:
            problems = tuple(one for one in self._state.document.problems if one is not _BUSY)
            self._state.change(history_waits=False, problems=problems)
