"""The warnings of a job: those of all its runs, and those of each."""

from __future__ import annotations

from ace_studio.records.results import TargetRun, Warning
from ace_studio.session.document import Document


def job_warnings(document: Document) -> tuple[Warning, ...]:
    """Every warning of the capture and of the result, once each; those that only explain one run are left out."""
    captured = document.capture.warnings if document.capture else ()
    found = document.result.warnings if document.result else ()
    return tuple(dict.fromkeys((*captured, *found)))


def run_warnings(document: Document, run: TargetRun) -> tuple[Warning, ...]:
    """The warnings about one run: its own, and those of the job that name its target."""
    return tuple(dict.fromkeys((*run.warnings, *(one for one in job_warnings(document) if one.where == run.target))))
