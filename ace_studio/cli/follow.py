"""Runs a job: shows its events on stderr and collects its answer."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ace_studio.cli.app import Console
from ace_studio.cli.show import captured_words
from ace_studio.cli.user_word import ask, is_question, with_word
from ace_studio.jobs.engines import EngineClient
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.jobs.hosts.check import check_python
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.results import AttemptStatus, CaptureAttempt, RunStatus
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings

if TYPE_CHECKING:
    from ace_studio.cli.agents.runner import AgentRunner

TRACE_JOB = "trace"
"""The job that shows its capture itself, on stdout."""

EventT = TypeVar("EventT", bound=messages.AnyEvent)


kept_runner: ContextVar[AgentRunner | None] = ContextVar("kept_runner", default=None)
"""Runs the requests of all commands, where one program gives many; None: each command starts an engine process."""
NO_ANSWER = (Problem(code=ErrorCode.CRASH, what="The engine gave no answer", remedy="Run the command again"),)
_LOST = (AttemptStatus.TIMEOUT, AttemptStatus.CRASHED)


@dataclass
class JobAnswer:
    """The answer of a job, collected from its events."""

    problems: tuple[Problem, ...] = ()
    rungs: list[CaptureAttempt] = field(default_factory=list)
    fixes: list[FixReport] = field(default_factory=list)
    events: dict[type, Any] = field(default_factory=dict)
    """The last event of each kind."""

    def find(self, kind: type[EventT]) -> EventT | None:
        """The last event of a kind; None if there was none."""
        found: EventT | None = self.events.get(kind)
        return found

    def need(self, kind: type[EventT]) -> EventT:
        """The last event of a kind. Raises: JobEndedError if the job failed, or there was none."""
        found = self.find(kind)
        if self.problems or found is None:
            raise JobEndedError(self)
        return found


class JobEndedError(AceError):
    """A job ended without its answer."""

    def __init__(self, answer: JobAnswer) -> None:
        super().__init__(*(answer.problems or NO_ANSWER))
        self.rungs = answer.rungs


def follow(
    request: messages.AnyRequest,
    console: Console,
    *,
    contain: bool | None = None,
    python: str = "",
    asks: bool = True,
) -> JobAnswer:
    """Run the request in an engine process, show its progress, and return its answer.

    Ctrl-C cancels the job and gives an answer with a ``cancelled`` problem. Where files would go to a host, a person at
    the terminal is asked first.

    Args:
        request: What to do.
        console: Where progress is shown.
        contain: Whether the engine is contained, as in `WorkerClient`.
        python: Its interpreter on this machine; empty for the one that the user chose for the folder, or the usual one.
        asks: Whether a person may be asked.

    Raises: AceError if no engine can run in that interpreter, the recipe names another machine, or an answer was no.
    """
    answer = JobAnswer()
    executor: AgentRunner | WorkerExecutor | None = kept_runner.get()
    is_own = executor is None
    if executor is None:
        request = with_word(request)
        host = messages.engine_of(request).host
        interpreter = _interpreter(request, python, console) if python or not host else ""
        if contain is None and not host and not interpreter:
            executor = WorkerExecutor()
        else:
            executor = WorkerExecutor(EngineClient(interpreter, contain=lambda: contain, is_lazy=True))
    try:
        with console.progress():
            for event in executor.run(request):
                _take(event, answer, console)
    except KeyboardInterrupt:
        answer.problems = (Problem(code=ErrorCode.CANCELLED, what="The job was cancelled"),)
    finally:
        executor.close()
    if is_own and asks and is_question(answer.problems):
        ask(answer.problems, console)
        return follow(request, console, contain=contain, python=python)
    return answer


def _interpreter(request: messages.AnyRequest, python: str, console: Console) -> str:
    """The chosen Python of this machine, checked; empty for the usual one."""
    if host := messages.engine_of(request).host:
        raise AceError.of(
            ErrorCode.USAGE,
            f"--python names a Python of this machine, and the engine is on {host}",
            remedy='Leave it out; the recipe names the Python there: [engine] python = "..."',
        )
    chosen = python or chosen_python(messages.code_of(request))
    if not chosen:
        return ""
    found = check_python(chosen)
    if not python:
        console.say(f"The engine runs in {found}, which was chosen for the folder of this model in the window")
    return found


def chosen_python(code: Path | None) -> str:
    """What the user chose for the folder of a model in the window; empty if nothing."""
    return "" if code is None else python_of_folder(code.parent)


def python_of_folder(folder: Path) -> str:
    """What the user chose for a folder, or the nearest one above it, in the window; empty if nothing."""
    return Settings(UserFolders.of_user().settings).project_interpreter(str(folder))


def _take(event: messages.AnyEvent, answer: JobAnswer, console: Console) -> None:
    """Show the event, and keep what belongs to the answer."""
    _show(event, console)
    answer.events[type(event)] = event
    match event:
        case messages.AttemptEnded(outcome=outcome):
            # After a crash the accepted capture method runs once more.
            answer.rungs = [*(one for one in answer.rungs if one.name != outcome.name), outcome]
        case messages.FixTried(fix=fix):
            answer.fixes.append(fix)
        case _:
            answer.problems = _problems_of(event) or answer.problems


def _problems_of(event: messages.AnyEvent) -> tuple[Problem, ...]:
    """Why the job ended without an answer; empty if it did not."""
    match event:
        case messages.JobFailed(problems=problems):
            return problems
        case messages.JobCancelled():
            return (Problem(code=ErrorCode.CANCELLED, what="The job was cancelled"),)
        case messages.WorkerLost(problem=problem):
            return (problem,)
        case _:
            return ()


def _show(event: messages.AnyEvent, console: Console) -> None:
    match event:
        case messages.Progress():
            console.show_progress(event)
        case messages.LogLine():
            console.log(event)
        case messages.WarningFound(warning=warning):
            console.warn(warning)
        case messages.JobWarned(problem=problem):
            console.show_problems((problem,), word="warning")
        case messages.FixTried(fix=fix):
            console.say(f"{fix.status}: {fix.title}")
        case messages.ModelCaptured(capture=capture) if event.job != TRACE_JOB:
            console.say(captured_words(capture))
        case messages.AttemptEnded(outcome=outcome) if outcome.status in _LOST and outcome.error is not None:
            console.say(f"{outcome.error.what}; going on without it")
        case messages.TargetFinished(run=run) if run.status is RunStatus.FAILED and run.error is not None:
            console.say(f"{run.target} {run.precision}: {run.error.what}")
