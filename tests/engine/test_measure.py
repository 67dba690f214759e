"""Latency is measured in balanced rounds and compared round by round."""

import itertools
import time
from collections import Counter

import numpy as np
import pytest
import torch

from ace_studio.engine import measure
from ace_studio.engine.progress import Cancelled, Reporter


def scripted_timer(times_ms):
    """A timer that reports a script instead of waiting."""
    feed = itertools.cycle(times_ms)

    def timer(call, repeats):
        for _ in range(repeats):
            call()
        return next(feed)

    return timer


def test_every_call_runs_in_every_round_and_begins_some_of_them():
    order = []
    calls = {name: (lambda name=name: order.append(name)) for name in "abc"}
    samples = measure.measure_interleaved(calls, rounds=6, reporter=Reporter(), timer=scripted_timer([60.0]))
    rounds = order[-18:]
    assert [len(samples[name].wall_ms) for name in "abc"] == [6, 6, 6]
    assert sorted(rounds[::3]) == list("aabbcc")


@pytest.mark.parametrize("count", range(1, 9))
def test_everybody_follows_everybody_else_equally_often(count):
    orders = measure.balanced_orders([str(place) for place in range(count)])
    followed = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert len(followed) == count * (count - 1)
    assert len(set(followed.values())) <= 1
    assert all(len(set(order)) == count for order in orders)
    assert all(sorted(at_place) == sorted(orders[0] * (len(orders) // count)) for at_place in zip(*orders, strict=True))


@pytest.mark.parametrize(("usual_ms", "leads"), [(5.0, 2), (60.0, 0)])
def test_a_short_call_is_made_once_before_it_is_timed_and_a_long_one_is_not(usual_ms, leads):
    made, timed = [], []

    def timer(call, repeats):
        timed.append(repeats)
        for _ in range(repeats):
            call()
        return usual_ms

    measure.measure_interleaved({"a": lambda: made.append(1)}, rounds=2, reporter=Reporter(), timer=timer)
    assert len(made) == sum(timed) + leads


def test_a_short_call_is_repeated_until_the_clock_is_negligible():
    counted = {"n": 0}

    def call():
        counted["n"] += 1

    measure.measure_interleaved({"a": call}, rounds=1, reporter=Reporter(), timer=scripted_timer([0.01]))
    assert counted["n"] > 100


def test_a_ratio_survives_a_machine_that_slows_down_halfway():
    slow = np.where(np.arange(40) < 20, 1.0, 3.0)
    noise = np.random.default_rng(0).normal(1.0, 0.01, 40)
    ratio = measure.ratio_of(measure.Samples(wall_ms=list(10 * slow)), measure.Samples(wall_ms=list(5 * slow * noise)))
    assert ratio.median == pytest.approx(2.0, rel=0.02)
    assert ratio.low <= ratio.median <= ratio.high
    assert ratio.high - ratio.low < 0.1


def test_equal_candidates_have_one_inside_the_interval():
    generator = np.random.default_rng(3)
    one, other = (measure.Samples(wall_ms=list(generator.lognormal(0, 0.1, 50))) for _ in range(2))
    ratio = measure.ratio_of(one, other)
    assert ratio.low < 1 < ratio.high


def test_different_numbers_of_rounds_cannot_be_compared():
    with pytest.raises(ValueError, match="broadcast"):
        measure.ratio_of(measure.Samples(wall_ms=[1.0] * 3), measure.Samples(wall_ms=[1.0] * 4))


def test_latency_gives_percentiles_count_and_samples():
    samples = measure.Samples(wall_ms=[float(i) for i in range(1, 102)], cpu_ms=[2.0] * 101)
    latency = samples.latency()
    assert (latency.p10, latency.p50, latency.p90, latency.n) == (11.0, 51.0, 91.0, 101)
    assert latency.p99 == pytest.approx(100.0)
    assert latency.cpu_p50 == 2.0
    assert len(latency.samples) == 101


def test_a_cancelled_measurement_stops_between_samples():
    calls = {"n": 0}

    def call():
        calls["n"] += 1

    reporter = Reporter(is_cancelled=lambda: calls["n"] > 40)
    with pytest.raises(Cancelled):
        measure.measure_interleaved({"a": call}, rounds=10_000, reporter=reporter, timer=scripted_timer([5.0]))
    assert calls["n"] < 100


def test_the_wall_clock_measures_milliseconds_per_call():
    assert 4.5 < measure.wall_clock_ms(lambda: time.sleep(0.005), 2) < 500


def test_threads_all_means_the_processors_this_process_may_use():
    assert measure.resolve_threads(3) == 3
    assert measure.resolve_threads("all") >= 1


@pytest.mark.parametrize(
    ("times_ms", "best"), [([8.0, 4.0, 3.0, 3.5], 3), ([8.0, 7.95, 7.9, 7.0], 4), ([1.0, 1.0, 2.0, 3.0], 1)]
)
def test_the_best_number_of_threads_is_the_fewest_that_no_other_clearly_beats(monkeypatch, times_ms, best):
    monkeypatch.setattr(measure, "resolve_threads", lambda _: 4)
    before = torch.get_num_threads()
    found = measure.best_threads(
        lambda: None, Reporter(), timer=lambda call, repeats: times_ms[torch.get_num_threads() - 1]
    )
    assert found == best
    assert torch.get_num_threads() == before


def test_of_two_candidates_a_round_and_its_mirror_make_one_ratio():
    calls = {"a": lambda: None, "b": lambda: None}
    behind_itself, behind_the_other = 60.0, 90.0  # what runs second in a round is first in the next
    samples = measure.measure_interleaved(calls, rounds=7, reporter=Reporter(), timer=scripted_timer([60.0] * 10 + [
        behind_itself, behind_the_other, behind_itself, behind_the_other,
    ] * 4))  # fmt: skip
    assert samples["a"].is_mirrored
    assert len(samples["a"].wall_ms) == 7
    ratio = measure.ratio_of(samples["a"], samples["b"])
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((1.0, 1.0, 1.0))


def test_of_few_rounds_none_is_paired_so_that_one_disturbed_round_decides_nothing():
    samples = [measure.Samples(wall_ms=wall, is_mirrored=True) for wall in ([1.0, 1.1, 1.0], [5.0, 0.9, 0.9])]
    ratio = measure.ratio_of(*samples)
    assert ratio.low < 1.0 < ratio.median < ratio.high


def test_of_three_candidates_every_round_is_a_ratio():
    calls = {name: lambda: None for name in "abc"}
    samples = measure.measure_interleaved(calls, rounds=6, reporter=Reporter(), timer=scripted_timer([60.0]))
    assert not samples["a"].is_mirrored
    assert len(measure.round_ratios(samples["a"], samples["b"])) == 6


def test_the_wall_clock_gives_the_time_of_one_of_the_repeated_calls(monkeypatch):
    now_ns = [0]

    def call():
        now_ns[0] += 3_000_000

    monkeypatch.setattr(measure.time, "perf_counter_ns", lambda: now_ns[0])
    assert measure.wall_clock_ms(call, 100) == pytest.approx(3.0)
