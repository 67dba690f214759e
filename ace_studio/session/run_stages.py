"""What is being done with each run while a job goes on."""

from ace_studio.records.messages import Phase
from ace_studio.records.results import RunStatus
from ace_studio.session.document import Document, JobKind

_WORDS = {
    Phase.LOWER: "building …",
    Phase.CALIBRATE: "building …",
    Phase.COMPRESS: "building …",
    Phase.VERIFY: "comparing …",
    Phase.EVALUATE: "measuring accuracy …",
    Phase.MEASURE: "measuring …",
    Phase.EXPORT: "saving, verifying …",
}


def stage_words(document: Document) -> tuple[str, ...]:
    """Per run: what is being done with it now; ``unfinished`` if the job ended before it was built; else empty.

    Where the engine names no run, all that work are measured in turn.
    """
    activity, runs = document.activity, document.runs
    if document.result is not None:
        return ("",) * len(runs)
    if not activity.is_working or activity.verb is not JobKind.RUN:
        lost = [run.status is RunStatus.OK and run.build_seconds is None and run.latency_ms is None for run in runs]
        return tuple("unfinished" if each else "" for each in lost)
    working = [run.status is RunStatus.OK and not run.verified for run in runs]
    named = [number == activity.run for number in document.run_numbers]
    if activity.run is None and activity.phase is Phase.MEASURE:
        named = [works and not run.not_run for works, run in zip(working, runs, strict=True)]
    word = _WORDS.get(activity.phase, "")
    return tuple(word if chosen and works else "" for chosen, works in zip(named, working, strict=True))
