"""An engine that answers with what a real one once said: events recorded from a run of the shipped example.

``digits_events.jsonl`` holds one event per line, with ``{root}`` and ``{output}`` where paths were. It was written by
``python -m tests.gui.replay`` from a real run; do that again after the records change.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio.records.messages import AnyEvent, AnyRequest, WorkerReady
from ace_studio.session.job_queue import VERBS

ROOT = Path(__file__).resolve().parents[2]
RECORDING = Path(__file__).with_name("digits_events.jsonl")


def recorded_events(output: str = "/tmp/output", root: str = ROOT.as_posix()) -> dict[str, list[AnyEvent]]:
    """The events of each verb (``trace``, ``run``, ...), in order."""
    text = RECORDING.read_text(encoding="utf-8").replace("{root}", root).replace("{output}", output)
    events = [msgspec.json.decode(line, type=AnyEvent) for line in text.splitlines()]
    by_verb: dict[str, list[AnyEvent]] = {}
    for event in events:
        by_verb.setdefault(event.job.partition("-")[0], []).append(event)
    return by_verb


class ReplayEngine:
    """The session's engine. `answer` replays; with ``by_itself`` every request is answered at once."""

    def __init__(self, *, by_itself: bool = True) -> None:
        self.by_itself = by_itself
        self.requests: list[AnyRequest] = []
        self.cancelled: list[str] = []
        self.restarts = 0
        self.session: Any = None
        self._recorded = recorded_events()

    def send(self, request: AnyRequest) -> None:
        self.requests.append(request)
        if self.by_itself:
            self.answer(request)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    def restart(self) -> None:
        self.restarts += 1
        self.ready()

    def ready(self) -> None:
        self.session.apply(WorkerReady(protocol=1, pid=1, python="3", torch="2"))

    def events_for(self, request: AnyRequest) -> list[AnyEvent]:
        return [replace(event, job=request.job) for event in self._recorded[str(VERBS[type(request)])]]

    def answer(self, request: AnyRequest) -> None:
        for event in self.events_for(request):
            self.session.apply(event)


def write_recording(events: list[AnyEvent], *, output: str) -> None:
    """Write the recording anew."""
    lines = [msgspec.json.encode(event).decode() for event in events if event.job]
    text = "\n".join(lines).replace(output, "{output}").replace(ROOT.as_posix(), "{root}")
    RECORDING.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Run the shipped example in a real worker and write what it says."""
    from ace_studio.jobs.client import WorkerClient
    from ace_studio.records.messages import JOB_ENDS, DoctorRequest, InspectRequest, RunRequest, TraceRequest
    from ace_studio.records.places import example_recipe
    from ace_studio.records.recipes.file import read_recipe

    recipe, folder, output = read_recipe(example_recipe()), str(example_recipe().parent), "/tmp/ace-recording"
    common = {"recipe": recipe, "folder": folder, "trust_all": True}
    requests = [
        InspectRequest(job="inspect-1", path=f"{folder}/{recipe.model.source}"),
        DoctorRequest(job="environment-2"),
        TraceRequest(job="trace-3", **common),
        RunRequest(job="run-4", output=output, **common),
    ]
    kept = []
    with WorkerClient() as client:
        for request in requests:
            client.send(request)
            for event in client.events():
                kept.append(event)
                if isinstance(event, JOB_ENDS):
                    break
    write_recording(kept, output=output)


if __name__ == "__main__":
    main()
