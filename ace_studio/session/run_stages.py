"""What is being done with each run while a job goes on."""

from __future__ import annotations

from ace_studio.records.messages import Phase
from ace_studio.records.results import RunStatus
from ace_studio.session.document import Document, JobKind

_WORDS = {
    Phase.LOWER: "building …",
    Phase.CALIBRATE: "building …",
    Phase.VERIFY: "comparing …",
    Phase.EVALUATE: "measuring accuracy …",
    Phase.MEASURE: "measuring …",
    Phase.EXPORT: "saving, verifying …",
}
_BUILDING = (Phase.LOWER, Phase.CALIBRATE)


def run_stages(document: Document) -> tuple[str, ...]:
    """Per run: what is being done with it now; ``unfinished`` if the job ended before it was built; else empty.

    Runs are found by target and precision, which is what the engine says; of several that are alike it is the last one
    that is not verified. Where no run is named, the last one is built, and all that work are measured in turn.
    """
    activity, runs = document.activity, document.runs
    if document.result is not None:
        return ("",) * len(runs)
    if not activity.is_working or activity.verb is not JobKind.RUN:
        lost = [run.status is RunStatus.OK and run.build_seconds is None and run.latency_ms is None for run in runs]
        return tuple("unfinished" if each else "" for each in lost)
    working = [at for at, run in enumerate(runs) if run.status is RunStatus.OK and not run.verified]
    labels = {f"{runs[at].target} {runs[at].precision}": at for at in working}
    chosen = {at for label, at in labels.items() if label in activity.detail}
    if not chosen and activity.phase in _BUILDING:
        chosen = set(working[-1:])
    elif not chosen and activity.phase is Phase.MEASURE:
        chosen = set(working)
    return tuple(_WORDS.get(activity.phase, "") if at in chosen else "" for at in range(len(runs)))
