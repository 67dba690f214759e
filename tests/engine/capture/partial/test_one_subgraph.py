"""Capturing one subgraph on the calls that it gets."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ace_studio.engine.capture.partial.one_subgraph import capture_subgraph
from ace_studio.engine.capture.partial.recording import RecordedCalls
from ace_studio.engine.capture.partial.subgraph_modules import module_source
from ace_studio.engine.flow import Subgraph
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import Recipe

CPU = torch.device("cpu")


def captured(child: nn.Module, *calls: Tensor) -> Subgraph | Problem:
    recorded = RecordedCalls(calls=[((call,), {}) for call in calls], count=len(calls))
    source = module_source(nn.Sequential(child), "0", recorded, name="p0", first=1)
    return capture_subgraph(source, Recipe(), device=CPU, reporter=Reporter())


def test_a_submodule_is_captured_free_where_its_calls_differ_and_limited_elsewhere() -> None:
    found = captured(nn.Linear(3, 2), torch.ones(2, 3), torch.ones(5, 3))
    assert isinstance(found, Subgraph)
    assert found.captured.table.op_count == 1
    assert found.place.limits == (((1, None), (3, 3)),)


def test_the_first_call_is_the_one_that_is_counted_unless_it_is_too_small_to_trace() -> None:
    for rows, counted in ((5, 5), (1, 6)):
        found = captured(nn.Linear(3, 2), torch.ones(rows, 3), torch.ones(2, 3), torch.ones(6, 3))
        assert isinstance(found, Subgraph)
        assert sum(found.captured.table.flops) == 2 * counted * 3 * 2


def test_a_submodule_that_computes_nothing_is_a_problem() -> None:
    found = captured(nn.Identity(), torch.ones(2, 3))
    assert isinstance(found, Problem)
    assert found.code is ErrorCode.NOT_CAPTURED


def test_what_forward_raises_on_its_calls_is_the_problem() -> None:
    class Fails(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            Fails.calls += 1
            if Fails.calls > 1:
                raise RuntimeError("once only")
            return x

    found = captured(Fails(), torch.ones(2, 3))
    assert isinstance(found, Problem)
    assert "once only" in found.what
