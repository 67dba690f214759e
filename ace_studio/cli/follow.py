"""Runs a job: shows its events on stderr and collects its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from ace_studio.cli.console import Console
from ace_studio.cli.show import captured_words
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records import messages
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.results import AttemptStatus, CaptureAttempt, Result, RunStatus
from ace_studio.records.results.pruning import PruningReport

_LOST = (AttemptStatus.TIMEOUT, AttemptStatus.CRASHED)


@dataclass
class JobAnswer:
    """The answer of a job, collected from its events."""

    problems: tuple[Problem, ...] = ()
    file: messages.FileReport | None = None
    environment: messages.EnvironmentReport | None = None
    captured: messages.ModelCaptured | None = None
    result: Result | None = None
    rungs: list[CaptureAttempt] = field(default_factory=list)
    fixes: list[FixReport] = field(default_factory=list)
    caught: messages.InputsCaught | None = None
    pruning: PruningReport | None = None
    sensitivity: messages.SensitivityFound | None = None


def follow(request: messages.AnyRequest, console: Console) -> JobAnswer:
    """Run the request in an engine process, show its progress, and return its answer.

    Ctrl-C cancels the job and gives an answer with a ``cancelled`` problem.
    """
    answer = JobAnswer()
    executor = WorkerExecutor()
    try:
        with console.progress():
            for event in executor.run(request):
                _take(event, answer, console)
    except KeyboardInterrupt:
        executor.close()
        answer.problems = (Problem(code=ErrorCode.CANCELLED, what="The job was cancelled"),)
    finally:
        executor.close()
    return answer


def _take(event: messages.AnyEvent, answer: JobAnswer, console: Console) -> None:
    """Show the event, and keep what belongs to the answer."""
    _show(event, console)
    match event:
        case messages.FileInspected(report=file):
            answer.file = file
        case messages.EnvironmentFound(report=environment):
            answer.environment = environment
        case messages.AttemptEnded(outcome=outcome):
            # After a crash the accepted capture method runs once more.
            answer.rungs = [*(one for one in answer.rungs if one.name != outcome.name), outcome]
        case messages.ModelCaptured():
            answer.captured = event
        case messages.FixTried(fix=fix):
            answer.fixes.append(fix)
        case messages.InputsCaught():
            answer.caught = event
        case messages.PruningPreviewed(report=pruning):
            answer.pruning = pruning
        case messages.SensitivityFound():
            answer.sensitivity = event
        case messages.JobFinished(result=result):
            answer.result = result
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
        case messages.FixTried(fix=fix):
            console.say(f"{fix.status}: {fix.title}")
        case messages.ModelCaptured(capture=capture):
            console.say(captured_words(capture))
        case messages.AttemptEnded(outcome=outcome) if outcome.status in _LOST and outcome.error is not None:
            console.say(f"{outcome.error.what}; going on without it")
        case messages.TargetFinished(run=run) if run.status is RunStatus.FAILED and run.error is not None:
            console.say(f"{run.target} {run.precision}: {run.error.what}")
