"""What is told of a job: its problems, and the warnings of all its runs and of each."""

from __future__ import annotations

from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import TargetRun, Warning
from ace_studio.session.document import Document


def is_told(problem: Problem) -> bool:
    """Whether a problem is shown as one. A question for trust is asked by the line of steps, and only there."""
    return problem.code is not ErrorCode.UNTRUSTED


def job_warnings(document: Document) -> tuple[Warning, ...]:
    """Every warning of the capture and of the result, once each; those that only explain one run are left out."""
    captured = document.capture.warnings if document.capture else ()
    found = document.result.warnings if document.result else document.warned
    return tuple(dict.fromkeys((*captured, *found)))


def run_warnings(document: Document, run: TargetRun) -> tuple[Warning, ...]:
    """The warnings about one run: its own, and those of the job that name its target."""
    return tuple(dict.fromkeys((*run.warnings, *(one for one in job_warnings(document) if one.where == run.target))))
