"""A trace of a file, asked for twice: the second time from the cache, unless any file of the model changed."""

from pathlib import Path

import pytest

from ace_studio.engine import pipeline
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import AttemptEnded, Event, ModelCaptured, TraceRequest
from ace_studio.records.recipes.recipe import CaptureChoice, InputsChoice, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec

MODEL = """
from torch import nn
from layers import Scale

def make_model():
    return nn.Sequential(nn.Linear(3, 3), Scale())
"""
LAYERS = """
from torch import nn
from numbers_of_mine import FACTOR

class Scale(nn.Module):
    def forward(self, x):
        return x * FACTOR
"""
RECIPE = Recipe(
    model=ModelChoice(source="model.py", entry="make_model"),
    inputs=InputsChoice(rows=({"input": TensorSpec(shape=(1, 3))}, {"input": TensorSpec(shape=(4, 3))})),
    capture=CaptureChoice(rungs=("export",)),
)


def trace(folder: Path) -> list[Event]:
    events: list[Event] = []
    request = TraceRequest(job="trace", recipe=RECIPE, folder=str(folder), trust_all=True)
    pipeline.trace(request, Reporter(events.append, job="trace"))
    return events


def captured(events: list[Event]) -> ModelCaptured:
    (found,) = (event for event in events if isinstance(event, ModelCaptured))
    return found


def test_the_second_trace_is_from_the_cache_until_a_helper_of_a_helper_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACE_STUDIO_CACHE", str(tmp_path / "captures"))
    folder = tmp_path / "model"
    folder.mkdir()
    helper = folder / "numbers_of_mine.py"
    for name, text in (("model.py", MODEL), ("layers.py", LAYERS), ("numbers_of_mine.py", "FACTOR = 2.0\n")):
        (folder / name).write_text(text, encoding="utf-8")
    first, second = trace(folder), trace(folder)
    assert [captured(events).capture.cached for events in (first, second)] == [False, True]
    assert not any(isinstance(event, AttemptEnded) for event in second)
    one, other = captured(first), captured(second)
    assert one.graph == other.graph and one.fingerprint == other.fingerprint and one.sources == other.sources
    assert one.capture.inputs == other.capture.inputs and one.capture.support == other.capture.support
    helper.write_text("FACTOR = 3.0\n", encoding="utf-8")
    third = captured(trace(folder))
    assert not third.capture.cached and third.fingerprint != one.fingerprint
