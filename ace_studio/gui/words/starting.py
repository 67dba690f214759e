"""Why a job cannot start now, in the words of a tooltip."""

from __future__ import annotations

from ace_studio.session.document import Document
from ace_studio.session.job_queue import start_problem


def why_not(document: Document) -> str:
    """Why nothing can be started; empty if it can."""
    if document.needs_trust:
        return "The file has to be trusted first: see Model"
    problem = start_problem(document)
    return f"{problem.what}. {problem.remedy}" if problem is not None else ""
