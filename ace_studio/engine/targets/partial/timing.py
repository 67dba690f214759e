"""Decides by timing which built subgraphs to use: each against its eager graph, then the model with and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ace_studio.engine.flow import PartialModel, Subgraph
from ace_studio.engine.subgraphs.run_pieces import HostedSubgraph, SubgraphRunner
from ace_studio.engine.targets.base import Lowered

ROUNDS = 9
LONGEST_S = 8.0
"""Rounds end early when one comparison has taken this long."""
SLOWER = 1.05
"""A subgraph that takes this much longer than its eager graph is not used."""
CLEARLY_FASTER = 1.3
"""Subgraphs with a smaller speed-up may make the whole model slower, because entering a subgraph takes time."""


@dataclass(frozen=True)
class BuiltSubgraph:
    """One subgraph on a target, built or left eager."""

    subgraph: Subgraph
    lowered: Lowered | None
    reason: str = ""
    """Why it runs eagerly; empty if it does not."""
    gain: float = 0.0
    """Speed-up over eager on its first call."""


def timed_in_turn(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Median ms of each call, measured in turn so that a busy moment affects all of them."""
    times: list[list[float]] = [[] for _ in calls]
    begun = perf_counter()
    with torch.no_grad():
        for number in range(ROUNDS + 2):
            for own, call in zip(times, calls, strict=True):
                started = perf_counter()
                call()
                if number >= 2:  # the first calls allocate memory and choose kernels
                    own.append((perf_counter() - started) * 1e3)
            if number >= 2 and perf_counter() - begun > LONGEST_S:
                break
    return [median(own) for own in times]


def unless_slower(subgraph: Subgraph, lowered: Lowered) -> BuiltSubgraph:
    """The built subgraph, or the eager one if that is faster on the subgraph's first call."""
    ours, plain = subgraph.captured.examples[0].copied(), subgraph.captured.examples[0].copied()
    function = _plain(subgraph)
    built_ms, eager_ms = timed_in_turn([lambda: ours.call(lowered), lambda: plain.call(function)])
    gain = eager_ms / max(built_ms, 1e-6)
    if built_ms <= eager_ms * SLOWER:
        return BuiltSubgraph(subgraph, lowered, gain=gain)
    reason = f"slower than eager here ({built_ms:.3g} against {eager_ms:.3g} ms), so it stays eager"
    return BuiltSubgraph(subgraph, None, reason, gain)


def _plain(subgraph: Subgraph) -> Callable[..., Any]:
    """The subgraph as the model itself would run it."""
    plain: Callable[[Sequence[Tensor]], Any] | None = getattr(subgraph.captured.module, "plain", None)
    return subgraph.captured.module if plain is None else lambda *tensors: plain(tensors)


def best_together(partial: PartialModel, built: Sequence[BuiltSubgraph]) -> list[BuiltSubgraph]:
    """The subgraphs with which the whole model is fastest: all, those that clearly gain, or none."""
    choices = [list(built), [_kept_if(one, one.gain >= CLEARLY_FASTER) for one in built]]
    choices = [choice for number, choice in enumerate(choices) if choice not in choices[:number]]
    runs: list[Callable[..., Any]] = [runner_of(partial, choice) for choice in choices]
    runs.append(partial.module)
    choices.append([_kept_if(one, False) for one in built])
    own = [partial.examples[0].copied() for _ in runs]
    calls = [lambda run=run, example=example: example.call(run) for run, example in zip(runs, own, strict=True)]
    times = timed_in_turn(calls)
    fastest = min(times)
    enough = fastest * max(SLOWER, 1.0)
    return next(choice for choice, ms in zip(choices, times, strict=True) if ms <= enough)


def _kept_if(one: BuiltSubgraph, is_kept: bool) -> BuiltSubgraph:
    if is_kept or one.lowered is None:
        return one
    return replace(one, lowered=None, reason="the model as a whole is faster with this subgraph eager")


def runner_of(partial: PartialModel, built: Sequence[BuiltSubgraph]) -> SubgraphRunner:
    """The model with these subgraphs in their places."""
    hosted = [HostedSubgraph(one.subgraph.place, one.lowered) for one in built if one.lowered is not None]
    return SubgraphRunner(partial.module, hosted, controls=partial.controls)
