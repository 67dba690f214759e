"""Answers one request: runs its handler, and turns every result or error into the one event that ends the job."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, Problem

Handler = Callable[[Any, Reporter], None]
ENGINE_MODULE = "ace_studio.engine.pipeline"
HANDLER_NAMES: dict[type[messages.AnyRequest], str] = {
    messages.InspectRequest: "inspect",
    messages.DoctorRequest: "doctor",
    messages.TraceRequest: "trace",
    messages.RunRequest: "run",
    messages.FixRequest: "try_fixes",
    messages.SensitivityRequest: "sensitivity",
    messages.PrunePreviewRequest: "preview_prune",
    messages.CatchRequest: "catch_inputs",
    messages.ValuesRequest: "values",
}
"""Kind of request -> the function of the handler module that serves it."""
DETAILS_LIMIT = 20_000
"""Characters of a traceback that are sent."""


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
    try:
        return _run(request, handler, emit=emit, is_cancelled=is_cancelled)
    except Cancelled:
        return messages.JobCancelled(job=job)
    except AceError as error:
        return messages.JobFailed(job=job, problems=error.problems)
    except (KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, KeyboardInterrupt) and is_cancelled():
            return messages.JobCancelled(job=job)
        return messages.JobFailed(job=job, problems=(_exit_problem(error),))
    except BaseException as error:  # noqa: BLE001 - border: user code and libraries raise anything; the worker must live
        return messages.JobFailed(job=job, problems=(_problem_of(error),))


def _run(
    request: messages.AnyRequest,
    handler: Handler,
    *,
    emit: Callable[[messages.Event], None],
    is_cancelled: Callable[[], bool],
) -> messages.AnyEvent:
    ending: list[messages.AnyEvent] = []

    def take(event: messages.Event) -> None:
        named = replace(event, job=request.job)
        # The event that ends the job is sent when the handler has returned, so that the next job may follow.
        if isinstance(named, messages.JOB_ENDS):
            ending.append(named)
        else:
            emit(named)

    reporter = Reporter(take, job=request.job, is_cancelled=is_cancelled)
    reporter.check()
    handler(request, reporter)
    if not ending:
        raise AceError.of(
            ErrorCode.INTERNAL,
            "The job ended without an answer",
            why=f"{HANDLER_NAMES[type(request)]} returned and reported nothing",
        )
    return ending[0]


def _exit_problem(error: BaseException) -> Problem:
    words = "asked the process to end" if isinstance(error, SystemExit) else "raised KeyboardInterrupt"
    return Problem(
        code=ErrorCode.USER_CODE,
        what=f"The model's code {words}",
        why=f"{type(error).__name__}({error})",
        remedy="Call sys.exit only under: if __name__ == '__main__'",
        details=_traceback_text(error),
    )


def _problem_of(error: BaseException) -> Problem:
    text = f"{type(error).__name__}: {error}".strip(": ")[:2000]
    if _is_out_of_memory(error):
        return Problem(
            code=ErrorCode.OUT_OF_MEMORY,
            what="There was not enough memory",
            why=text,
            remedy="Use smaller or fewer examples, fewer targets at once, or a machine with more memory",
            details=_traceback_text(error),
        )
    return Problem(
        code=ErrorCode.INTERNAL,
        what="Something went wrong that ACE Studio did not expect",
        why=text,
        remedy="Please report it with the details. The engine is still there: you can go on",
        where=_where(error),
        details=_traceback_text(error),
    )


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether it is Python's error, torch's for devices (by name: torch may be absent) or that of its CPU allocator."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "DefaultCPUAllocator" in str(error)


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _traceback_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-DETAILS_LIMIT:]
