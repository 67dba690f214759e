"""Why no job can start now, as a tooltip."""

from __future__ import annotations

from ace_studio.session.document import Document
from ace_studio.session.job_queue import start_problem


def why_not(document: Document) -> str:
    """Why no job can start; empty if one can."""
    if document.needs_trust:
        return "Trust comes first"
    problem = start_problem(document)
    return f"{problem.what}. {problem.remedy}" if problem is not None else ""
