"""Functions that are marked for a while: found under every name, of every kind, and put back as they were."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.capture.controls import Controls
from ace_studio.engine.subgraphs.run_pieces import MARKS, marked
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind

KINDS = ("nonstrict_trace", "allow_in_graph", "disable")
Apply = Callable[[str, str], AbstractContextManager[Any]]


def free(x: Tensor) -> Tensor:
    return x + 1


class Net(nn.Module):
    @staticmethod
    def static(x: Tensor) -> Tensor:
        return x + 1

    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        assert cls is Net or cls is Child
        return x + 1

    def plain(self, x: Tensor) -> Tensor:
        assert isinstance(self, Net)
        return x + 1

    def forward(self, x: Tensor) -> Tensor:
        return free(x)


class Child(Net):
    pass


class Doubled(torch.autograd.Function):
    """An autograd function whose code the compiler cannot read."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        time.sleep(0)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


class Doubling(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Doubled.apply(x).relu()


def by_controls(function: str, kind: str) -> AbstractContextManager[Any]:
    return Controls([CaptureControl(function=function, treat_as=ControlKind(kind))], Child()).applied("dynamo")


def by_runner(function: str, kind: str) -> AbstractContextManager[Any]:
    return marked([(function, kind)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("apply", [by_controls, by_runner])
@pytest.mark.parametrize("owner", [Net, Child])
@pytest.mark.parametrize("name", ["static", "of_class", "plain"])
def test_a_method_stays_what_it_is_while_it_is_marked_and_after(
    owner: type, name: str, apply: Apply, kind: str
) -> None:
    before = dict(vars(owner))
    with apply(f"{__name__}:{owner.__name__}.{name}", kind):
        assert vars(owner)[name] is not before.get(name)
        assert torch.equal(getattr(owner(), name)(torch.zeros(2)), torch.ones(2))
    assert dict(vars(owner)) == before and vars(owner).get(name) is before.get(name)


@pytest.mark.parametrize("kind", ["nonstrict_trace", "allow_in_graph"])
@pytest.mark.parametrize(
    ("apply", "name"), [(by_controls, "Doubled"), (by_controls, "Doubled.apply"), (by_runner, "Doubled")]
)
def test_an_autograd_function_is_marked_by_its_class(apply: Apply, name: str, kind: str) -> None:
    before = Doubled
    with apply(f"{__name__}:{name}", kind):
        compiled = torch.compile(Doubling(), backend="eager", fullgraph=True)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
        assert Doubled is not before
    assert Doubled is before


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_a_compiled_library_can_be_marked(kind: str) -> None:
    before = np.sort
    with by_runner("numpy:sort", kind):
        assert np.sort is not before and np.sort([2, 1]).tolist() == [1, 2]
    assert np.sort is before


def test_a_name_without_a_module_is_told_to_the_runner_with_it() -> None:
    choices = [
        CaptureControl(function="free", treat_as=ControlKind.ALLOW_IN_GRAPH),
        CaptureControl(function="Net.static", treat_as=ControlKind.DISABLE),
        CaptureControl(function=f"{__name__}:free", treat_as=ControlKind.NONSTRICT_TRACE),
    ]
    marks = Controls(choices, Child()).marks()
    assert marks == (
        (f"{__name__}:free", "allow_in_graph"),
        (f"{__name__}:Net.static", "disable"),
        (f"{__name__}:free", "nonstrict_trace"),
    )
    assert {kind for _, kind in marks} == set(MARKS)
    with marked(marks):
        assert torch.equal(Net()(torch.zeros(2)), torch.ones(2))
