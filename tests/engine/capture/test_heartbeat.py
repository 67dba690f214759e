"""What is said while one rung runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import capture_model, heartbeat
from ace_studio.engine.capture.heartbeat import Heartbeat, watched_attempt
from ace_studio.engine.capture.limit import CaptureTimeoutError
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.dynamo import StackLook
from ace_studio.records.messages import AttemptStarted, Event, Progress
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe

torch.set_num_threads(1)


class Dawdling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x.shape[0], torch.SymInt):
            time.sleep(0.6)  # as long as a hundred ops
        return self.linear(x)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Identity(), Dawdling()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "QUIET_S", 0.05)
    monkeypatch.setattr(heartbeat, "PULSE_S", 0.05)


@pytest.mark.usefixtures("quick")
def test_the_users_line_and_the_module_are_named_while_they_are_traced() -> None:
    events: list[Event] = []
    capture_model(
        LoadedModel(module=Deep(), source=Path(), sha256=""),
        [Example.of((torch.rand(n, 3),)) for n in (2, 4)],
        Recipe(capture=CaptureChoice(rungs=("export",))),
        device=torch.device("cpu"),
        reporter=Reporter(events.append),
    )
    pulses = [event.detail for event in events if isinstance(event, Progress) and event.is_pulse]
    line = Dawdling.forward.__code__.co_firstlineno + 2
    wanted = f"tracing blocks.1, {Path(__file__).name}:{line}"
    assert any(words.startswith("export: ") and words.endswith(wanted) for words in pulses), pulses
    assert not any("torch" in words or "sympy" in words for words in pulses)


def beat(looks: list[StackLook]) -> str:
    made = Heartbeat("export", module=Deep(), reporter=Reporter(), thread_id=threading.get_ident())
    made._looks.extend(looks)
    return made.words()


def test_sizes_are_named_when_most_of_the_time_goes_into_them() -> None:
    sizes = StackLook(file="/home/me/model.py", line=41, is_in_size_arithmetic=True)
    op = StackLook(file="/home/me/model.py", line=41)
    assert beat([op, sizes, sizes]) == "export: 0 s, working out symbolic sizes, model.py:41"
    assert beat([sizes, op, op]) == "export: 0 s, model.py:41"
    assert beat([]) == "export: 0 s"


def test_a_module_that_the_tracer_reads_is_named_as_the_user_knows_it() -> None:
    read = StackLook(module_path="L['self']._modules['blocks']._modules['1'].conv")
    assert beat([read]) == "export: 0 s, tracing blocks.1.conv"


def deep(levels: int, then: Callable[[], float]) -> float:
    return then() if levels == 0 else deep(levels - 1, then)


def test_one_look_at_a_deep_stack_costs_less_than_a_hundredth_of_a_second() -> None:
    """One look a second may cost one percent. The best of several, because others share the machine."""

    made = Heartbeat("export", module=Deep(), reporter=Reporter(), thread_id=threading.get_ident())

    def seconds() -> float:
        begin = time.perf_counter()
        made.look()
        return time.perf_counter() - begin

    assert min(deep(400, seconds) for _ in range(5)) < 0.01


def test_an_attempt_reports_when_it_starts_with_its_limit_and_when_that_holds_no_more() -> None:
    events: list[Event] = []
    with (
        pytest.raises(CaptureTimeoutError),
        watched_attempt("export", 0.2, module=nn.Identity(), reporter=Reporter(events.append)),
    ):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            time.sleep(0.005)
    limits = [event.limit_s for event in events if isinstance(event, AttemptStarted)]
    assert limits == [0.2, None]
