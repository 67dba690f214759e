"""One ratio out of several processes: where memory comes to lie differs from process to process, and with it the speed.

Within a process the rounds share that luck, so a thousand rounds of one process say less than ten of a hundred.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ace_studio.engine.measure import Samples

DRAWS = 2_000


@dataclass(frozen=True)
class PooledRatio:
    """Baseline over candidate: above 1 the candidate is faster. ``low`` and ``high`` bound it at 95 %."""

    median: float
    low: float
    high: float
    per_process: tuple[float, ...]


def typical_ms(samples: Sequence[Samples]) -> float:
    """Median over processes of each process's median."""
    return statistics.median(one.latency().p50 for one in samples)


def cpu_share(samples: Sequence[Samples]) -> float:
    """CPU time over time by the clock, all rounds together: long waits count, however few they are."""
    return sum(sum(one.cpu_ms) for one in samples) / sum(sum(one.wall_ms) for one in samples)


def pooled_ratio(baseline: Sequence[Samples], candidate: Sequence[Samples], *, seed: int = 0) -> PooledRatio:
    """Median over processes of their ratios of medians, with an interval that knows both kinds of chance.

    The interval draws processes with replacement, and in each drawn process rounds with replacement. With five
    processes that differ it reaches about from the lowest to the highest of them.

    Args:
        baseline: Rounds per process.
        candidate: The same processes and rounds.
        seed: Of the draws.

    Source: bootstrap in two stages, Davison and Hinkley 1997, section 3.8; percentiles of 2,000 draws.
    Raises: ValueError if the two do not have the same processes and rounds, or there are none.
    """
    if not baseline:
        raise ValueError("no process was timed")
    pairs = [np.asarray((slow.wall_ms, fast.wall_ms)) for slow, fast in zip(baseline, candidate, strict=True)]
    typical = np.asarray([np.median(one, axis=1) for one in pairs])
    rng = np.random.default_rng(seed)
    processes = rng.integers(0, len(pairs), (DRAWS, len(pairs)))
    drawn = np.empty(processes.shape)
    for number, one in enumerate(pairs):
        places = processes == number
        rounds = rng.integers(0, one.shape[1], (int(places.sum()), one.shape[1]))
        slow, fast = np.median(one[:, rounds], axis=2)
        drawn[places] = slow / fast
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    per_process = typical[:, 0] / typical[:, 1]
    return PooledRatio(float(np.median(per_process)), float(low), float(high), tuple(map(float, per_process)))
