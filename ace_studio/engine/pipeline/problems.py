"""Turns an unexpected exception of a runtime into a problem."""

import traceback

import msgspec

from ace_studio.engine.targets.shared.library_error import library_reason
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.system_faults import system_problem


def build_problem(error: Exception, *, label: str, precision: str) -> Problem:
    """The problem of a target (``label``) whose library raised while it built or ran a model."""
    if (fault := system_problem(error)) is not None:
        return msgspec.structs.replace(fault, what=f"{fault.what}: {label} at {precision} was not finished")
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        what=f"{label} could not build or run this model at {precision}",
        why=library_reason(error),
        remedy="Try another target or keep the op that it names at fp32; the details hold what the library said.",
        details="".join(traceback.format_exception(error)).strip()[-20_000:],
    )
