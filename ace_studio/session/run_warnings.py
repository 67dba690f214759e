"""What is reported of a job: its problems, and the warnings of all its runs and of each."""

from msgspec.structs import replace

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import TargetRun, Warning
from ace_studio.session.comparison.sides import NAMES
from ace_studio.session.document import Document


def is_told(problem: Problem) -> bool:
    """Whether a problem is shown as one. A question for trust is asked by the line of steps, and only there."""
    return problem.code is not ErrorCode.UNTRUSTED


def job_warnings(document: Document) -> tuple[Warning, ...]:
    """Every warning of the capture and of the result, once each; those that only explain one run are left out."""
    captured = document.capture.warnings if document.capture else ()
    found = document.result.warnings if document.result else document.warned
    return tuple(dict.fromkeys((*captured, *found)))


def warnings_by_side(document: Document) -> list[tuple[Warning, str]]:
    """`job_warnings`, each with the side that has it: ``A``, ``B`` or ``A, B``; empty while nothing is compared."""
    if document.comparison is None:
        return [(warning, "") for warning in job_warnings(document)]
    found: dict[Warning, list[str]] = {}
    for name, side in zip(NAMES, document.comparison.sides, strict=True):
        result = side.result
        for warning in job_warnings(replace(document, result=result, capture=result.capture if result else None)):
            found.setdefault(warning, []).append(name)
    return [(warning, ", ".join(names)) for warning, names in found.items()]


def run_warnings(document: Document, run: TargetRun) -> tuple[Warning, ...]:
    """The warnings about one run: its own, and those of the job that name its target or its artifact."""
    of_job = (one for one in job_warnings(document) if one.where in (run.target, run.artifact))
    return tuple(dict.fromkeys((*run.warnings, *of_job)))
