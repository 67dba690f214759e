"""Whether the intervals of speed-ups hold on a busy machine: how many of two equal programs are called different.

    python -m tests.benchmarks.bench_intervals --out FOLDER [--count 100] [--sizes 96 256 640]

The same layer is measured against a copy of itself, as a run measures its candidates, on one core that a child process
loads on purpose: not at all, in bursts of 20 to 300 ms, in bursts of 0.2 to 2 s, and all the time. Loads and sizes take
turns. A measurement that says *not decided* claims nothing. The exit status is 1 if more than 5 of 100 others say that
one of the two is faster, which at 95 % is chance.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from ace_studio.engine.measure import measure_interleaved, ratio_of
from ace_studio.engine.progress import Reporter
from tests.benchmarks.figures import Figure, conclude

MOST_WRONG = 0.05
ROUNDS = 30
LOADS: dict[str, tuple[float, float]] = {
    "none of ours": (0.0, 0.0), "short bursts": (0.02, 0.3), "long bursts": (0.2, 2.0), "all the time": (1e9, 1e9),
}  # fmt: skip
"""Shortest and longest burst of work, s; as long is the pause after each."""
WORK = """
import random, sys, time
least, most = map(float, sys.argv[1:])
draws = random.Random(0)
while True:
    until = time.monotonic() + draws.uniform(least, most)
    while time.monotonic() < until:
        sum(range(1000))
    time.sleep(draws.uniform(least, most))
"""


@contextmanager
def load(name: str) -> Iterator[None]:
    """A child process that works on this process's core."""
    if not LOADS[name][1]:
        yield
        return
    child = subprocess.Popen([sys.executable, "-c", WORK, *map(str, LOADS[name])])
    try:
        time.sleep(0.2)  # until it has started
        yield
    finally:
        child.kill()
        child.wait()


def outcome(size: int, *, rounds: int = ROUNDS) -> str:
    """What a measurement of two equal layers says: ``equal``, ``different`` or ``not decided``."""
    layer = torch.nn.Linear(size, size)
    copy = torch.nn.Linear(size, size)
    copy.load_state_dict(layer.state_dict())
    inputs = torch.randn(size, size)
    with torch.no_grad():
        samples = measure_interleaved(
            {"one": lambda: layer(inputs), "other": lambda: copy(inputs)}, rounds=rounds, reporter=Reporter()
        )
    if samples["one"].undecided:
        return "not decided"
    ratio = ratio_of(samples["one"], samples["other"])
    return "equal" if ratio.low <= 1.0 <= ratio.high else "different"


def figures_of(found: dict[str, Counter[str]]) -> list[Figure]:
    """The share of wrong claims over all loads, with what each load gave."""
    whole = sum(found.values(), Counter[str]())
    decided, wrong = whole["equal"] + whole["different"], whole["different"]
    each = "; ".join(
        f"{name}: {one['different']} of {one['equal'] + one['different']}, {one['not decided']} not decided"
        for name, one in found.items()
    )
    what = f"{wrong} of {decided} decided speed-ups of two equal programs exclude 1 under changing load ({each})"
    is_lost = wrong > MOST_WRONG * decided
    return [Figure(id="intervals.wrong", what=what, value=wrong, unit="", lost=is_lost, counted=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=(96, 256, 640))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the child inherits it
    found = {name: Counter[str]() for name in LOADS}
    for name, counted in found.items():
        with load(name):
            for at in range(-(-options.count // len(LOADS))):
                counted[outcome(options.sizes[at % len(options.sizes)])] += 1
        print(name, dict(counted), flush=True)
    return conclude(options.out, figures_of(found))


if __name__ == "__main__":
    sys.exit(main())
