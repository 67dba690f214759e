"""One capture attempt: its time limit, its proof, and a second trace at wider sizes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture import attempts, capture_model
from ace_studio.engine.capture.attempts import Heartbeat, watched_attempt
from ace_studio.engine.capture.limit import CaptureTimeoutError
from ace_studio.engine.flow import Example, LoadedModel
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.engine.torch_private.dynamo import StackLook
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import AttemptStarted, Event, Progress
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.capture.captures import assert_helpful, by, capture, dims, failure


def test_a_branch_on_a_size_that_the_examples_have_is_not_accepted() -> None:
    error = failure("size_specialised", by("export"))
    assert_helpful(error, code=ErrorCode.NOT_CAPTURED, line="if x.shape[1] == 3:")
    assert "x.1 != 3" in error.problem.why


class AddsTheLastMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.before
        self.before = x.mean(0)
        return x


def test_no_constant_of_a_tracer_stays_in_the_module_so_it_can_be_captured_again() -> None:
    module = AddsTheLastMean()
    names = set(vars(module))
    for _ in range(2):
        with pytest.raises(AceError):
            capture(module, [torch.randn(2, 4), torch.randn(3, 4)], by("fx"))
    assert set(vars(module)) == names


class Slow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x.shape[0], torch.SymInt):
            until = time.monotonic() + 60
            while time.monotonic() < until:
                time.sleep(0.005)
        return x + 1


def test_a_method_that_takes_too_long_is_ended_and_says_what_would_help() -> None:
    recipe = Recipe(capture=CaptureChoice(rungs=("export",), time_limit_s=0.5))
    started = time.monotonic()
    with pytest.raises(AceError, match=r"took longer than 0\.5 s") as caught:
        capture(Slow(), [(torch.ones(2, 3),), (torch.ones(3, 3),)], recipe)
    assert time.monotonic() - started < 10
    assert caught.value.problem.remedy


def test_a_cancel_in_the_middle_of_a_trace_is_heard() -> None:
    started = time.monotonic()
    reporter = Reporter(is_cancelled=lambda: time.monotonic() - started > 1)
    with pytest.raises(Cancelled):
        capture(Slow(), [(torch.ones(2, 3),), (torch.ones(3, 3),)], reporter=reporter)
    assert time.monotonic() - started < 15


class AsksForAPoint(nn.Module):
    """Takes another path where its map has shrunk to one column; with a factor of 1 the result is the same."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.shrink = nn.Conv2d(3, 4, 3, stride=16, padding=1)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        y = self.shrink(x)
        return y[..., 0] * self.factor if y.shape[3] == 1 else y.mean(3)


CROSSED = [(torch.ones(2, 3, 16, 32).cumsum(3),), (torch.ones(3, 3, 32, 16).cumsum(2),)]
"""One has the larger height, the other the larger width: only an example that nobody gave has both."""


def test_a_map_that_is_a_point_in_the_traced_example_only_is_captured_by_a_wider_one() -> None:
    captured, report = capture(AsksForAPoint(1.0), CROSSED, by("export"))
    assert report.rung == "export"
    assert captured.example.args[0].shape == (3, 3, 32, 32)
    assert {16, 32} <= set(dims(captured)["x.3"].verified_sizes)


def test_a_point_that_computes_something_else_is_still_refused() -> None:
    with pytest.raises(AceError) as caught:
        capture(AsksForAPoint(2.0), CROSSED, by("export"))
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED


class LongRowsTakeAnotherPath(nn.Module):
    """With the same result. It counts how often it is traced."""

    traces = 0

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x.shape[1], torch.SymInt):
            type(self).traces += 1
        return x.sin() * 2 if x.shape[1] > 20 else x.sin() + x.sin()


def test_every_example_is_traced_once_by_a_method() -> None:
    examples = [(torch.randn(2, 40),), (torch.randn(2, 7),)]
    with pytest.raises(AceError) as caught:
        capture(LongRowsTakeAnotherPath(), examples, by("export"))
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED
    assert LongRowsTakeAnotherPath.traces == len(examples)


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
    monkeypatch.setattr(attempts, "QUIET_S", 0.05)
    monkeypatch.setattr(attempts, "PULSE_S", 0.05)


@pytest.mark.usefixtures("quick")
def test_the_users_line_and_the_module_are_named_while_they_are_traced() -> None:
    events: list[Event] = []
    capture_model(
        LoadedModel(module=Deep(), source=Path(), sha256=""),
        [Example.of((torch.rand(n, 3),)) for n in (2, 4)],
        by("export"),
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
