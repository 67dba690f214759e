"""One capture attempt: its time limit, its proof, and a second trace at wider sizes."""

from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.capture.captures import (
    WHOLE,
    assert_helpful,
    capture,
    dims,
    failure,
)


def test_a_branch_on_a_size_that_the_examples_have_is_not_accepted() -> None:
    error = failure("size_specialised")
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
            capture(module, [torch.randn(2, 4), torch.randn(3, 4)], Recipe(capture=CaptureChoice(rungs=("fx",))))
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
    captured, report = capture(AsksForAPoint(1.0), CROSSED, WHOLE)
    assert report.rung == "export"
    assert captured.example.args[0].shape == (3, 3, 32, 32)
    assert {16, 32} <= set(dims(captured)["x.3"].verified_sizes)


def test_a_point_that_computes_something_else_is_still_refused() -> None:
    with pytest.raises(AceError) as caught:
        capture(AsksForAPoint(2.0), CROSSED, WHOLE)
    assert caught.value.problem.code is ErrorCode.NOT_CAPTURED
