"""What the panel says about a sweep before it starts, while it runs and when it has ended."""

from __future__ import annotations

from collections import Counter

from ace_studio.gui.style.language import tr
from ace_studio.gui.words.formatting import plural, seconds_text
from ace_studio.records.errors import Problem
from ace_studio.records.sweeps import RowStatus, SweepStatus
from ace_studio.session.sweep_state import SweepPhase, SweepPreview, SweepState


def preview_words(preview: SweepPreview, state: SweepState) -> str:
    """``12 jobs, 2 at once. About 8:30, by earlier runs of their models.``."""
    if preview.problems:
        return "\n".join(map(problem_words, preview.problems))
    if not preview.jobs:
        return tr("Open a model, or the file of a sweep.")
    left_out = preview.combinations - preview.jobs
    count = plural(preview.jobs, "job") + (tr(" ({count} excluded)", count=left_out) if left_out else "")
    where = (
        tr("at {address}", address=state.scheduler) if state.scheduler else tr("{count} at once", count=preview.at_once)
    )
    return f"{count}, {where}. {_forecast(preview, state)}"


def _forecast(preview: SweepPreview, state: SweepState) -> str:
    if preview.seconds is None:
        return tr("No earlier run of these models says how long it takes.")
    time = seconds_text(preview.seconds)
    if state.scheduler:
        words = tr("About {time} for one worker, by earlier runs of their models here.", time=time)
    else:
        words = tr("About {time}, by earlier runs of their models.", time=time)
    if preview.unknown:
        words += " " + tr("Not counted: {jobs} of models that never ran.", jobs=plural(preview.unknown, "job"))
    return words


def problem_words(problem: Problem) -> str:
    """A problem in one line."""
    parts = [f"{problem.where}: {problem.what}" if problem.where else problem.what, problem.why, problem.remedy]
    return ". ".join(part for part in parts if part)


def progress_words(state: SweepState, now_s: float) -> str:
    """``5 of 12 jobs, about 4:10 left; 2 at work: 6 Building, 7 Measuring latency``."""
    if state.phase is SweepPhase.STOPPING:
        return tr("Stopping")
    if state.is_lost:
        return tr("The scheduler does not answer and is looked for; the jobs go on there")
    if not state.at_once:
        return tr("Starting, {time}", time=seconds_text(now_s - state.started_s))
    words = tr(
        "{done} of {total} jobs, {time}", done=state.done, total=state.total, time=seconds_text(now_s - state.started_s)
    )
    if state.remaining_s is not None:
        words += tr(", about {time} left", time=seconds_text(state.remaining_s))
    running = ", ".join(f"{job} {one.phase}" for job, one in sorted(state.at_work.items()))
    return f"{words}; {running}" if running else words


def outcome_words(state: SweepState) -> str:
    """What became of the sweep whose rows are shown; empty if there is none."""
    if state.problems:
        return problem_words(state.problems[0])
    if state.status is None:
        return ""
    counts = Counter(row.status for row in state.rows)
    words = tr("{done} of {total} jobs have a result", done=counts[RowStatus.DONE], total=state.total)
    failed = counts[RowStatus.FAILED] + counts[RowStatus.LOST]
    words += tr(", {count} failed", count=failed) if failed else ""
    return words + (tr(", the sweep was stopped") if state.status is SweepStatus.CANCELLED else "")
