"""Answers one request: runs its handler, and turns every result or error into the one event that ends the job."""

import errno
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem, is_out_of_memory, message_of
from ace_studio.records.system_faults import system_problem

Handler = Callable[[Any, Reporter], None]
ENGINE_MODULE = "ace_studio.engine.pipeline"
HANDLERS_VARIABLE = "ACE_STUDIO_HANDLERS"
"""Names a module, or a ``.py`` file, whose functions serve the requests instead of the engine: for tests."""
HANDLER_NAMES: dict[type[messages.AnyRequest], str] = {
    messages.InspectRequest: "inspect",
    messages.DoctorRequest: "doctor",
    messages.TraceRequest: "trace",
    messages.RunRequest: "run",
    messages.FixRequest: "fix",
    messages.SensitivityRequest: "sensitivity",
    messages.PrunePreviewRequest: "preview_prune",
    messages.CatchRequest: "catch_inputs",
    messages.ValuesRequest: "values",
}
"""Kind of request -> the function of the handler module that serves it."""


def load_handlers(name: str) -> dict[type[messages.AnyRequest], Handler]:
    """Map each kind of request to its handler in a module, given by name or by the path of a ``.py`` file."""
    module = _import_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    return {kind: getattr(module, function) for kind, function in HANDLER_NAMES.items()}


def _import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def answer_request(
    request: messages.AnyRequest,
    handler: Handler,
    *,
    emit: Callable[[messages.Event], None],
    is_cancelled: Callable[[], bool],
) -> messages.AnyEvent:
    """Run one job and return the event that ends it; the others go to ``emit``.

    Raises: nothing. Whatever user code raises becomes a JobFailed, `SystemExit` and `KeyboardInterrupt` included.
    """
    job = request.job
    ending: list[messages.AnyEvent] = []

    def take(event: messages.Event) -> None:
        named = replace(event, job=job)
        # The event that ends the job is sent when the handler has returned, so that the next job may follow.
        if isinstance(named, messages.JOB_ENDS):
            ending.append(named)
        else:
            emit(named)

    reporter = Reporter(take, job=job, is_cancelled=is_cancelled)
    try:
        reporter.check()
        handler(request, reporter)
        if not ending:
            raise AceError.of(
                ErrorCode.INTERNAL,
                "The job ended without an answer",
                why=f"{HANDLER_NAMES[type(request)]} returned and reported nothing",
            )
        return ending[0]
    except Cancelled:
        return messages.JobCancelled(job=job)
    except AceError as error:
        return messages.JobFailed(job=job, problems=error.problems)
    except BaseException as error:  # noqa: BLE001 - border: user code and libraries raise anything; the worker must live
        if isinstance(error, KeyboardInterrupt) and is_cancelled():
            return messages.JobCancelled(job=job)
        return messages.JobFailed(job=job, problems=_problems_of(error))


def with_cause(answer: messages.AnyEvent, left: tuple[str, ...]) -> messages.AnyEvent:
    """The end of a job, saying that the model's code closed files of the engine where that made it fail."""
    words = os.strerror(errno.EBADF)
    if not left or not isinstance(answer, messages.JobFailed):
        return answer
    found = [
        replace(
            one,
            code=ErrorCode.USER_CODE,
            what="Code that the job ran closed files of the engine, which failed then",
            why=f"{'; '.join(left)}; {one.why}",
            remedy="Let it close only what it has opened: os.close and os.closerange take files of anybody",
        )
        if one.code in (ErrorCode.INTERNAL, ErrorCode.SYSTEM) and words in one.what + one.why + one.details
        else one
        for one in answer.problems
    ]
    return replace(answer, problems=tuple(found))


def _problems_of(error: BaseException) -> tuple[Problem, ...]:
    """What the user's code did, if it raised; else what failed in the engine."""
    # By name: without the engine there is no user code, and importing it takes seconds.
    user_errors = sys.modules.get("ace_studio.engine.load.user_errors")
    if user_errors is not None and user_errors.raised_by_user(error):
        found: AceError = user_errors.user_code_error(error, "Running the model's code")
        return found.problems
    return (_problem_of(error),)


def _problem_of(error: BaseException) -> Problem:
    text = f"{type(error).__name__}: {message_of(error, limit=2000)}".removesuffix(": ")
    where, details = _where(error), "".join(traceback.format_exception(error))
    if (fault := system_problem(error)) is not None:
        return replace(fault, details=details)
    if is_out_of_memory(error):
        code, what = ErrorCode.OUT_OF_MEMORY, "There was not enough memory"
        remedy, where = "Use smaller or fewer examples, fewer targets at once, or a machine with more memory", ""
    elif isinstance(error, KeyboardInterrupt | SystemExit):
        code, what = ErrorCode.USER_CODE, "Code that the job ran asked the engine to end"
        remedy = "Call sys.exit only under: if __name__ == '__main__'"
    else:
        code, what = ErrorCode.INTERNAL, "Something went wrong that ACE Studio did not expect"
        remedy = "Please report it with the details. The engine is still there: you can go on"
    return Problem(code=code, what=what, why=text, remedy=remedy, where=where, details=details)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
