"""Interleaved measurement of latency, reliable on a noisy machine.

All candidates and the baseline run in the same rounds, after a warm-up that lasts until the times are stable. Over the
rounds every candidate follows every other equally often, and a short call is made once untimed before it is timed,
because the call before it has filled the caches with other weights. Rounds in which other work had the core, or the
processor another speed, are left out for all candidates, and others are made instead. A speed-up is the ratio of the
medians over the same rounds.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ace_studio.engine import disturbance
from ace_studio.engine.progress import Reporter
from ace_studio.records.goals import EQUAL, WORTHWHILE
from ace_studio.records.results import Latency

BEST = "best"
"""As ``threads`` of a recipe: the number with which the original is fastest."""
BEST_ROUNDS = 5
MIN_SAMPLE_MS = 1.0
"""A sample shorter than this repeats the call, so that the clock's own cost stays below a thousandth."""
LEAD_BELOW_MS = 50.0
"""A shorter call is made once before its sample; for a longer one, cold caches make no difference."""
WARM_UP_CALLS = 30
WARM_UP_MS = 2_000.0
STABLE_SPREAD = 0.05
BOOTSTRAP_DRAWS = 2_000
MOST_WAITING = 0.02
"""Of a round that counts: the time that threads of this process wait for a core, as a share of the round's."""
MOST_CHANGE = 1.15
"""Of the time of a reference computation before a round that counts, from the usual; turbo clocks ripple by less."""
LEAST_ROUNDS = 10
"""Fewer that count decide nothing, and neither does less than a third of what was asked for."""
MORE_S = (1.0, 30.0)
"""The least and the most time for more rounds; between them it is twice what the rounds that were asked for took."""


@dataclass
class Samples:
    """The rounds of one candidate: milliseconds per call by the wall clock and by the process's CPU clock."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    undecided: str = ""
    """Why the rounds do not say what is faster; empty if they do."""
    is_throttled: bool = False
    """Whether that is the processor's speed."""

    def latency(self) -> Latency:
        """Percentiles over the rounds."""
        wall = np.asarray(self.wall_ms)
        p10, p50, p90, p99 = (float(value) for value in np.percentile(wall, (10, 50, 90, 99)))
        return Latency(
            p10=p10,
            p50=p50,
            p90=p90,
            p99=p99,
            n=len(wall),
            cpu_p50=statistics.median(self.cpu_ms),
            samples=tuple(round(value, 6) for value in self.wall_ms),
        )


@dataclass(frozen=True)
class Ratio:
    """Baseline over candidate: above 1 the candidate is faster. ``low`` and ``high`` bound it at 95 %."""

    median: float
    low: float
    high: float


def wall_clock_ms(call: Callable[[], object], repeats: int) -> float:
    """Milliseconds that one of ``repeats`` calls takes, by the wall clock."""
    start = time.perf_counter_ns()
    for _ in range(repeats):
        call()
    return (time.perf_counter_ns() - start) / 1e6 / repeats


def cuda_event_ms(call: Callable[[], object], repeats: int) -> float:
    """Milliseconds that one of ``repeats`` calls takes on the GPU, between two events of its stream."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / repeats


Timer = Callable[[Callable[[], object], int], float]


def timer_for(device: torch.device) -> Timer:
    """The clock that covers all work on a device."""
    return cuda_event_ms if device.type == "cuda" else wall_clock_ms


def resolve_threads(threads: int | str) -> int:
    """The number of threads on this machine for ``threads`` of a recipe; for ``best`` the most that are tried."""
    if threads not in ("all", BEST):
        return int(threads)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Windows and macOS
        return os.cpu_count() or 1


def best_threads(call: Callable[[], object], reporter: Reporter, *, timer: Timer = wall_clock_ms) -> int:
    """The number of torch's threads with which a call is fastest; a larger one must be `WORTHWHILE` times as fast.

    Every number up to 8 is tried, above that fewer, each in turn. Torch has the threads that it had before afterwards.
    """
    most = resolve_threads(BEST)
    counts = sorted({one for one in (*range(1, 9), 12, 16, 24, 32, 48, 64, 96, 128) if one < most} | {most})
    before, times = torch.get_num_threads(), {count: list[float]() for count in counts}
    try:
        for at in range(BEST_ROUNDS):
            for count in counts:
                reporter.advance(at / BEST_ROUNDS, f"{count} of up to {most} threads")
                torch.set_num_threads(count)
                usual_ms = max(timer(call, 1), 1e-4)  # the first call starts the threads
                times[count].append(timer(call, max(1, round(MIN_SAMPLE_MS / usual_ms))))
    finally:
        torch.set_num_threads(before)
    medians = {count: statistics.median(found) for count, found in times.items()}
    best = counts[0]
    for count in counts[1:]:
        if WORTHWHILE * medians[count] <= medians[best]:
            best = count
    return best


def warm_up(call: Callable[[], object], timer: Timer) -> float:
    """Call until the last five times agree within 5 %, at most 30 times or 2 s; return the median of those, ms."""
    times: list[float] = []
    spent = 0.0
    while len(times) < WARM_UP_CALLS and (spent < WARM_UP_MS or len(times) < 3):
        times.append(timer(call, 1))
        spent += times[-1]
        last = times[-5:]
        if len(last) == 5 and max(last) - min(last) <= STABLE_SPREAD * statistics.median(last):
            break
    return statistics.median(times[-5:])


def measure_interleaved(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    reporter: Reporter,
    timer: Timer = wall_clock_ms,
) -> dict[str, Samples]:
    """Measure every call in every round, in balanced order, until enough rounds were undisturbed or time is up.

    Args:
        calls: Name -> function without arguments that runs the candidate once.
        rounds: Samples per candidate.
        reporter: Receives the progress; may cancel between samples.
        timer: `wall_clock_ms`, or `cuda_event_ms` where the work runs on a GPU, and other work on a core disturbs none.
    """
    repeats: dict[str, int] = {}
    leading: set[str] = set()
    for name, call in calls.items():
        reporter.advance(0.0, f"warming up {name}")
        usual_ms = warm_up(call, timer)
        repeats[name] = max(1, round(MIN_SAMPLE_MS / max(usual_ms, 1e-4)))
        if usual_ms < LEAD_BELOW_MS:
            leading.add(name)
    orders = balanced_orders(list(calls))
    samples = {name: Samples() for name in calls}
    taken_s, waiting, reference_ms = list[float](), list[float](), list[float]()
    while (quiet := sum(one <= 1 for one in _disturbances(waiting, reference_ms))) < rounds and (
        len(taken_s) < rounds or sum(taken_s[rounds:]) < min(max(2 * sum(taken_s[:rounds]), MORE_S[0]), MORE_S[1])
    ):
        reporter.advance(quiet / rounds, f"round {quiet + 1} of {rounds}")
        reference_ms.append(1.0 if timer is cuda_event_ms else disturbance.reference_ms())
        began_s, waited_s = time.perf_counter(), disturbance.waited_s()
        for name in orders[len(taken_s) % len(orders)]:
            if name in leading:
                calls[name]()
            cpu_start = time.process_time_ns()
            samples[name].wall_ms.append(timer(calls[name], repeats[name]))
            samples[name].cpu_ms.append((time.process_time_ns() - cpu_start) / 1e6 / repeats[name])
        waited_s = disturbance.waited_s() - waited_s
        taken_s.append(time.perf_counter() - began_s)
        waiting.append(0.0 if timer is cuda_event_ms else waited_s / max(taken_s[-1], 1e-9))
    return _undisturbed(samples, waiting, reference_ms, rounds)


def _disturbances(waiting: Sequence[float], reference_ms: Sequence[float]) -> list[float]:
    """How disturbed each round was, by other work or by another speed than the usual; above 1 it does not count."""
    usual = statistics.median(reference_ms or [1.0])
    changes = [(max(one / usual, usual / one) - 1) / (MOST_CHANGE - 1) for one in reference_ms]
    return [max(share / MOST_WAITING, change) for share, change in zip(waiting, changes, strict=True)]


def _undisturbed(
    samples: Mapping[str, Samples], waiting: Sequence[float], reference_ms: Sequence[float], rounds: int
) -> dict[str, Samples]:
    """The undisturbed rounds; where they are too few the least disturbed ones, which decide nothing."""
    disturbances, undecided, is_throttled = _disturbances(waiting, reference_ms), "", False
    kept = [at for at, one in enumerate(disturbances) if one <= 1]
    if len(kept) < max(min(LEAST_ROUNDS, rounds), rounds // 3):
        words = f"other work took {min(1.0, statistics.fmean(waiting)):.0%} of the time"
        if is_throttled := 2 * sum(share > MOST_WAITING for share in waiting) < len(waiting) - len(kept):
            times = f"a reference computation took {min(reference_ms):.3g} to {max(reference_ms):.3g} ms"
            words = f"the processor changed its speed while measuring ({times})"
        undecided = f"{words}: {len(kept)} of {len(waiting)} rounds were undisturbed"
        kept = sorted(sorted(range(len(waiting)), key=disturbances.__getitem__)[:rounds])
    return {
        name: Samples([one.wall_ms[at] for at in kept], [one.cpu_ms[at] for at in kept], undecided, is_throttled)
        for name, one in samples.items()
    }


def balanced_orders(names: Sequence[str]) -> list[list[str]]:
    """Orders in which, taken together, every name is at every place and follows every other name equally often.

    Source: Williams 1949, Experimental designs balanced for the estimation of residual effects of treatments.
    """
    count = len(names)
    zigzag = [(place + 1) // 2 if place % 2 else (count - place // 2) % count for place in range(count)]
    orders = [[names[(place + shift) % count] for place in zigzag] for shift in range(count)]
    return orders if count % 2 == 0 else orders + [order[::-1] for order in orders]


def ratio_of(baseline: Samples, candidate: Samples, *, seed: int = 0) -> Ratio:
    """Speed-up of the candidate: the ratio of the two medians, with an interval over rounds, widened by `EQUAL`.

    A round is drawn for both at once. An interval of rounds that decide nothing contains 1.

    Source: percentile bootstrap, Efron and Tibshirani 1993, chapter 13; 2,000 draws, 95 %.
    Raises: ValueError if the two do not have the same number of rounds.
    """
    walls = np.asarray([baseline.wall_ms, candidate.wall_ms])
    draws = np.random.default_rng(seed).integers(0, walls.shape[1], (BOOTSTRAP_DRAWS, walls.shape[1]))
    slow, fast = np.median(walls[:, draws], axis=2)
    low, high = np.percentile(slow / fast, (2.5, 97.5)) * (1 / EQUAL, EQUAL)
    if baseline.undecided or candidate.undecided:
        low, high = min(low, 1.0), max(high, 1.0)
    before, after = np.median(walls, axis=1)
    return Ratio(median=float(before / after), low=float(low), high=float(high))
