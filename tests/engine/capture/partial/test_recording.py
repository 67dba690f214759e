"""What is kept of the calls of a subgraph, and the order of the first forward."""

import torch
from torch import nn

from ace_studio.engine.capture.partial.recording import (
    MOST_CALLS,
    MOST_CALLS_IN_A_FORWARD,
    ForwardStep,
    OpCounter,
    RecordedCalls,
    Recording,
    recorded_calls,
)
from ace_studio.engine.torch_private.dynamo import HeardBreak

BREAK = HeardBreak(RuntimeError(), (), skips_frame=False)
SKIP = HeardBreak(RuntimeError(), (), skips_frame=True)


def recording(*events: object) -> Recording:
    reads = {number: (0,) for number, event in enumerate(events) if isinstance(event, ForwardStep)}
    return Recording([], [], list(events), reads, lambda heard: ("net.py", 3))


def test_calls_of_new_sizes_are_kept_as_copies() -> None:
    calls, x = RecordedCalls(), torch.ones(2, 3)
    for size in (2, 2, 2, 5):
        calls.begin_forward()
        calls.add((x[:1].expand(size, 3),))
    x.zero_()
    assert [tuple(call[0].shape) for call in calls.calls] == [(2, 3), (2, 3), (5, 3)]
    assert calls.count == 4
    assert all(bool((call[0] == 1).all()) for call in calls.calls)


def test_a_loop_leaves_room_for_the_calls_of_other_forwards() -> None:
    calls = RecordedCalls()
    for _ in range(10):
        calls.begin_forward()
        for size in range(1, 9):
            calls.add((torch.ones(size + 10 * len(calls.calls)),))
    assert len(calls.calls) == MOST_CALLS
    first = RecordedCalls()
    for size in range(1, 9):
        first.add((torch.ones(size),))
    assert len(first.calls) == MOST_CALLS_IN_A_FORWARD


def test_a_break_stands_behind_the_subgraph_that_ends_at_it() -> None:
    steps = recording(BREAK, ForwardStep(name="p0"), ForwardStep(name="p1")).steps
    assert [step.name or step.line for step in steps] == ["p0", ("net.py", 3), "p1"]
    assert steps[0].reads == (0,)


def test_a_break_that_skips_its_function_stands_before_what_runs_next() -> None:
    steps = recording(SKIP, ForwardStep(name="p0")).steps
    assert [step.is_break for step in steps] == [True, False]


def test_operators_are_counted_by_line() -> None:
    counter = OpCounter()
    with counter:
        counter.current = ("net.py", 7)
        torch.ones(2).add(1)
    assert {line for line, _ in counter.counts} == {("net.py", 7)}
    assert sum(count for (_, op), count in counter.counts.items() if "add" in op) == 1


def test_calls_of_submodules_are_recorded_with_their_arguments() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    with recorded_calls(net, ["0", "1"]) as found:
        net(torch.ones(2, 3))
    net(torch.ones(2, 3))
    assert [found[path].count for path in ("0", "1")] == [1, 1]
    (args, kwargs) = found["1"].calls[0]
    assert tuple(args[0].shape) == (2, 4) and kwargs == {}
