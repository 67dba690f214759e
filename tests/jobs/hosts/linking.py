"""Requests to the engine of the tests on a host, and their events."""

import sys
import time
from pathlib import Path

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import JOB_ENDS, AnyEvent, RunRequest, TraceRequest
from ace_studio.records.recipes.recipe import EngineChoice, ModelChoice, Recipe
from ace_studio.records.sending import Word
from tests.jobs.hosts.ssh_host import HOST

HANDLERS = str(Path(__file__).with_name("host_engine.py"))
ENGINE = EngineChoice(host=HOST, python=sys.executable)


def request(folder: Path, entry: str, *, output: Path | None = None, **changed) -> RunRequest | TraceRequest:
    engine = changed.pop("engine", ENGINE)
    recipe = Recipe(model=ModelChoice(source="model.py", entry=entry), engine=engine)
    word = Word(hosts=(engine.host,))
    more = {"recipe": recipe, "folder": str(folder), "trust_all": True, "word": word, "job": entry, **changed}
    return TraceRequest(**more) if output is None else RunRequest(output=str(output), **more)


def follow(client: WorkerClient, *kinds: type[AnyEvent], within_s: float = 20.0) -> list[AnyEvent]:
    """Events up to the first of these kinds; of any that ends a job, if none is given."""
    until, seen = time.monotonic() + within_s, []
    while time.monotonic() < until:
        event = client.next_event(0.1)
        if event is not None:
            seen.append(event)
            if isinstance(event, kinds or JOB_ENDS):
                return seen
    raise AssertionError(f"no {kinds or JOB_ENDS} in {seen}")
