"""The session: the only owner of the document. Verbs come from the window, events from the engine.

Everything here runs on one thread (the window's main thread) and returns at once; only the engine takes its time.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import Phase, Progress
from ace_studio.session.advice import without_origin
from ace_studio.session.choices import prefill
from ace_studio.session.document import Document, JobKind, Part, QueueState, StepTime
from ace_studio.session.findings import apply_finding, with_failure
from ace_studio.session.job_queue import EngineLink, JobQueue
from ace_studio.session.kept.autosave import Autosave
from ace_studio.session.kept.devices import DeviceList
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.graphs import KeptGraphs
from ace_studio.session.kept.history import History
from ace_studio.session.kept.settings import Settings, Value
from ace_studio.session.kept.trust import TrustStore, hash_in
from ace_studio.session.run_preview import BUILDS, BYTES, RunPreview, run_preview, weight_bytes
from ace_studio.session.state import Listener, SessionState
from ace_studio.session.verbs.choices import ChoiceVerbs
from ace_studio.session.verbs.comparing import ComparisonVerbs
from ace_studio.session.verbs.devices import DeviceVerbs
from ace_studio.session.verbs.files import FileVerbs
from ace_studio.session.verbs.history import HistoryVerbs
from ace_studio.session.verbs.jobs import JobVerbs
from ace_studio.session.verbs.plan import PlanVerbs
from ace_studio.session.verbs.sweep import SweepLink, SweepVerbs
from ace_studio.session.verbs.trust import TrustVerbs
from ace_studio.session.verbs.view import ViewVerbs

HISTORY_WAIT_S = 0.05
"""How long the window may stand still for a history that another program holds."""

CANCELLED = Problem(
    code=ErrorCode.CANCELLED,
    what="The run was cancelled",
    why="it was stopped by hand",
    remedy="Run again",
)

_QUEUE_STATES: dict[type[messages.AnyEvent], QueueState] = {
    messages.JobFinished: QueueState.DONE,
    messages.JobCancelled: QueueState.CANCELLED,
}


class Session:
    """The user's work: choices with undo, findings, and the conversation with the engine.

    Its parts hold the verbs. Every verb ends by telling the listeners the new document and the parts of it that
    changed. What goes wrong becomes a problem in the document; verbs do not raise.
    """

    def __init__(
        self,
        engine: EngineLink,
        *,
        folders: UserFolders,
        settings: Settings | None = None,
        sweeps: SweepLink | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The engine is expected to be starting already: its WorkerReady is awaited.

        Args:
            engine: where requests go.
            folders: where the user's settings, trust, history and runs are.
            settings: those of the window, if it has them already.
            sweeps: where sweeps go; None where none can be started.
            clock: seconds that only grow.
        """
        self.settings = settings or Settings(folders.settings)
        self._trust = TrustStore(folders.trust)
        self._queue = JobQueue(engine, clock)
        self._steps = StepTimes(self.settings, clock)
        self._open_next: messages.FileReport | None = None
        """Weights whose code is opened as soon as the inspection has ended."""
        self._goes_on = False
        """Whether the job that just ended was refused for files in trusted folders alone, and is started again."""
        self._state = state = SessionState(
            Document(recent_files=self.settings.recent_files), autosave=Autosave(folders.autosave), clock=clock
        )
        self.jobs = JobVerbs(state, self._queue, trust=self._trust, settings=self.settings, runs_folder=folders.runs)
        self.files = FileVerbs(state, self.jobs, self.settings)
        history = History(folders.history, wait_s=HISTORY_WAIT_S)
        self.history = HistoryVerbs(state, history, KeptGraphs(folders.graphs), self.files)
        self.comparing = ComparisonVerbs(state, self.history, self.jobs, self.settings)
        self.files.opened = self.comparing.model_opened
        self.history.renamed = self.comparing.renamed
        self._queue.on_send = self.history.run_sent
        self.jobs.on_give_up = self._given_up
        self.trust = TrustVerbs(state, self._trust, self.jobs)
        self.choices = ChoiceVerbs(state, self.jobs)
        self.plan = PlanVerbs(state)
        self.view = ViewVerbs(state)
        self.sweep = SweepVerbs(state, self.history, self._trust, self.settings, sweeps)
        self.files.open_sweep = self.sweep.open_file
        self.devices = DeviceVerbs(state, DeviceList(folders.devices), History(folders.history), self._trust)

    @property
    def document(self) -> Document:
        """The current document."""
        return self._state.document

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change; the returned function ends that."""
        self._state.listeners.append(listener)
        return lambda: self._state.listeners.remove(listener)

    def set_setting(self, key: str, value: Value) -> None:
        """Change a setting of the application; it is saved at once and is no undoable choice."""
        with self._state.reporting():
            self.settings.set(key, value)
        self._state.tell({Part.SETTINGS})

    def preview(self) -> RunPreview:
        """What a run of the present choices will do and cost."""
        usual = self._steps.usual(self.document, JobKind.RUN)
        return run_preview(self.document, usual, self._steps.of_others(self.document, JobKind.RUN))

    def report(self, problem: Problem) -> None:
        """Show a problem of the window itself."""
        self._state.report(problem)

    def reporting(self) -> AbstractContextManager[None]:
        """Show an `AceError` of the block as a problem."""
        return self._state.reporting()

    def close(self) -> None:
        """The window ends, and with it the run that goes on. Wait until the unsaved choices are stored."""
        self._given_up("the window was closed")
        self._state.autosave.wait()

    def apply(self, event: messages.AnyEvent) -> None:
        """Take in an event of the engine. Late events of a job that has ended change nothing but the history.

        It is about the present model, also while a past run or a comparison is shown.
        """
        with self._state.at_present():
            self._apply(event)

    def _apply(self, event: messages.AnyEvent) -> None:
        request = self._queue.current
        match event:
            case messages.LogLine(text=text):
                lines = (*self.document.log, text)
                self._state.change(log=lines[-int(self.settings.get("log_lines")) :])
            case messages.WorkerReady():
                self._queue.became_ready()
            case messages.WorkerLost():
                is_shown = not self._queue.is_abandoned
                if event.problem.code is not ErrorCode.CANCELLED:
                    self._state.report(event.problem)
                    job = request.job if request is not None and request.job != self.comparing.job else ""
                    self._state.set_document(with_failure(self.document, (event.problem,), job=job))
                steps = self._steps.ended(self.document, is_finished=False)
                self._state.change(steps=steps, ended_by=event.problem if request is not None else None)
                over = self._queue.lost(event)
                self.history.add_unfinished(over, event.problem, is_shown=is_shown)
                is_cancelled = event.problem.code is ErrorCode.CANCELLED
                self.jobs.ended(over, QueueState.CANCELLED if is_cancelled else QueueState.FAILED)
            case _ if request is not None and event.job == request.job:
                self._take_in(request, event)
            case messages.JobFinished():
                self.history.add_finished(event, self.document.recipe, folder=self.document.folder)
            case _:
                pass  # a late answer of an earlier job
        self.jobs.show_activity()

    def _take_in(self, request: messages.AnyRequest, event: messages.AnyEvent) -> None:
        """Take in an event of the current job. A finished run goes into the history even if the job was abandoned."""
        is_beside = request.job == self.comparing.job
        is_wanted = not self._queue.is_abandoned and not is_beside
        recipe = request.recipe if isinstance(request, messages.TraceRequest) else self.document.recipe
        if is_wanted:
            self._state.set_document(apply_finding(self.document, event, asked_with=without_origin(recipe)))
            self._follow_steps(event)
        elif is_beside and not self._queue.is_abandoned:
            self.comparing.heard(event)
        match event:
            case messages.FileInspected() if is_wanted:
                self._inspected(event)
            case messages.InputsCaught() if is_wanted:
                self.jobs.take_caught(event)
            case messages.JobFailed() if not self._queue.is_abandoned and any(
                problem.code is ErrorCode.UNTRUSTED and hash_in(problem) for problem in event.problems
            ):
                self.jobs.refused()
                asked = {hash_in(one) for one in event.problems if one.code is ErrorCode.UNTRUSTED}
                # What was refused although it came with trust would be refused for ever.
                self._goes_on = not asked & {"", *self._trust.hashes}
                self._state.change(needs_trust=True, is_trusted=False)
                # The file may have changed since it was inspected; trust is about what is there now.
                self.jobs.inspect_source()
            case _:
                pass
        self._tell_history(request, event, is_shown=is_wanted)
        if isinstance(event, messages.JOB_ENDS):
            self._state.change(rung_at_work="")
            self._queue.ended()
            if self._goes_on:
                self._goes_on = False
                self.jobs.show_activity()  # the refused job has ended
                self.trust.trust_covered()
            else:
                self.jobs.ended(request, _QUEUE_STATES.get(type(event), QueueState.FAILED))
            if (weights := self._open_next) is not None:
                self._open_next = None
                opening = partial(self.files.open_path, weights.code[0], weights=weights.path)
                self.jobs.with_wish_kept(opening)

    def _tell_history(self, request: messages.AnyRequest, event: messages.AnyEvent, *, is_shown: bool) -> None:
        """Put a run that has ended into the history, however it ended."""
        match event:
            case messages.JobFinished():
                of = request if isinstance(request, messages.TraceRequest) else self.document
                self.history.add_finished(event, of.recipe, folder=of.folder)
            case messages.JobFailed(problems=(problem, *_)):
                self.history.add_unfinished(request, problem, is_shown=is_shown)
            case messages.JobCancelled():
                self.history.add_unfinished(request, CANCELLED, is_shown=is_shown)
            case _:
                pass

    def _given_up(self, why: str) -> None:
        """The run that goes on is ended with its engine, of which nothing more is heard."""
        is_shown = not self._queue.is_abandoned
        self.history.add_unfinished(self._queue.current, replace(CANCELLED, why=why), is_shown=is_shown)

    def _follow_steps(self, event: messages.AnyEvent) -> None:
        """Keep the time of every phase, and whether the job was cancelled."""
        if not self.document.activity.is_working or self.document.activity.verb is JobKind.VALUES:
            return  # a look at a file or at an op is no step
        if isinstance(event, messages.Progress):
            self._state.change(steps=self._steps.heard(event, self.document))
        elif isinstance(event, messages.JOB_ENDS):
            steps = self._steps.ended(self.document, is_finished=isinstance(event, messages.JobFinished))
            self._state.change(steps=steps, ended_by=_early_end(event))

    def _inspected(self, event: messages.FileInspected) -> None:
        report = event.report
        state, recipe = self._state, self.document.recipe
        if event.job == self.jobs.opening_job:
            # What the file itself makes plain is part of opening it, not a choice to undo.
            fresh, state.saved = state.saved, prefill(state.saved, report)
            if not state.are_remembered:
                recipe = prefill(recipe, report)
            state.undo_stack.rewrite(lambda earlier: state.saved if earlier == fresh else earlier)
        if event.job == self.jobs.opening_job and len(report.code) == 1 and report.code[0].endswith(".py"):
            self._open_next = report  # the one thing that these weights can mean
        is_trusted = self.trust.inspected(report)
        was_refused = any(problem.code is ErrorCode.UNTRUSTED for problem in self.document.problems)
        self._state.change(
            file=report,
            is_trusted=is_trusted and not was_refused,
            needs_trust=not is_trusted or was_refused,
            recipe=recipe,
            is_dirty=recipe != self._state.saved,
        )
        if self.document.wished and not self.document.needs_trust and self._open_next is None:
            self.jobs.retry_refused()


def _early_end(event: messages.AnyEvent) -> Problem | None:
    """Why a job ended early; a file that waits for trust is no reason: the job goes on with it."""
    match event:
        case messages.JobCancelled():
            return CANCELLED
        case messages.JobFailed(problems=(problem, *_)) if problem.code is not ErrorCode.UNTRUSTED:
            return problem
        case _:
            return None


_KEY = "step-seconds"


class StepTimes:
    """Follows one job at a time. A phase that comes several times is one step."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._job = ""
        self._spent: dict[Phase, float] = {}
        self._usual: Mapping[str, float] = {}
        self._now: Phase | None = None
        self._since_s = 0.0

    def heard(self, event: Progress, document: Document) -> tuple[StepTime, ...]:
        """The steps after this event: the same object if the phase goes on."""
        if event.job != self._job:
            self._job, self._spent, self._now = event.job, {}, None
            self._usual = self.usual(document, document.activity.verb)
        elif event.phase is self._now:
            return document.steps
        self._close()
        self._now = event.phase
        self._spent.setdefault(event.phase, 0.0)
        return self._steps()

    def ended(self, document: Document, *, is_finished: bool) -> tuple[StepTime, ...]:
        """The steps after the end of the job; those of a finished one are what the next is expected to take."""
        self._close()
        self._now = None
        if is_finished and self._spent:
            result = document.result
            tried = sum(step.run is None for step in result.search) if result else 0
            builds = len(document.runs) + tried
            spent = {phase.name: round(seconds, 2) for phase, seconds in self._spent.items()}
            spent |= {BUILDS: builds, BYTES: weight_bytes(document) or 0}
            with suppress(AceError):  # the next forecast is not worth a message
                self._settings.remember_newest(_KEY, _name(document, document.activity.verb), spent)
        steps = self._steps() if self._job else ()
        self._job = ""
        return steps

    def usual(self, document: Document, verb: JobKind) -> Mapping[str, float]:
        """Seconds of each phase of the last job of this kind with this model, by its name; and its builds."""
        found = self._settings.recall_all(_KEY).get(_name(document, verb))
        return found if isinstance(found, dict) else {}

    def of_others(self, document: Document, verb: JobKind) -> list[Mapping[str, float]]:
        """The same of the last job of this kind with each other model."""
        own, kept = _name(document, verb), self._settings.recall_all(_KEY)
        return [found for name, found in kept.items()
                if name != own and name.startswith(f"{verb} ") and isinstance(found, dict)]  # fmt: skip

    def _close(self) -> None:
        now_s = self._clock()
        if self._now is not None:
            self._spent[self._now] += now_s - self._since_s
        self._since_s = now_s

    def _steps(self) -> tuple[StepTime, ...]:
        """In the order in which they began; those that are still expected last."""
        to_come = (phase for phase in Phase if phase.name in self._usual and phase not in self._spent)
        return tuple(
            StepTime(
                phase=phase,
                seconds=self._spent.get(phase),
                usual_s=self._usual.get(phase.name),
                since_s=self._since_s if phase is self._now else None,
            )
            for phase in (*self._spent, *(to_come if self._now is not None else ()))
        )


def _name(document: Document, verb: JobKind) -> str:
    return f"{verb} {document.folder}/{document.recipe.model.source}"
