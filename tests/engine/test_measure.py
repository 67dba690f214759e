"""Latency is measured in balanced rounds, and compared over those that nothing disturbed."""

import itertools
import time
from collections import Counter
from types import SimpleNamespace

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


def samples_of(wall_ms):
    return measure.Samples(wall_ms=list(wall_ms), cpu_ms=list(wall_ms))


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


def test_a_speed_up_is_the_ratio_of_the_two_latencies_and_rounds_are_drawn_for_both_at_once():
    slow = np.where(np.arange(40) < 22, 1.0, 3.0)
    noise = np.random.default_rng(0).normal(1.0, 0.01, 40)
    one, other = (samples_of(wall) for wall in (10 * slow, 5 * slow * noise))
    ratio = measure.ratio_of(one, other)
    assert ratio.median == one.latency().p50 / other.latency().p50 == pytest.approx(2.0, rel=0.02)
    assert ratio.low <= ratio.median <= ratio.high
    assert ratio.high - ratio.low < 0.15


def test_what_differs_by_less_than_equal_programs_do_is_no_difference():
    ratio = measure.ratio_of(samples_of([1.009] * 9), samples_of([1.0] * 9))
    assert ratio.low < 1.0 < ratio.high
    assert measure.ratio_of(samples_of([1.011] * 9), samples_of([1.0] * 9)).low > 1.0


def test_half_of_the_rounds_may_be_spoiled_without_moving_the_ratio():
    generator = np.random.default_rng(1)
    one, other = (generator.normal(1.0, 0.005, 31) for _ in range(2))
    one[generator.permutation(31)[:12]] *= 3
    ratio = measure.ratio_of(samples_of(one), samples_of(other))
    assert ratio.low < 1 < ratio.high
    assert ratio.median == pytest.approx(1.0, abs=0.02)


def test_rounds_that_decide_nothing_give_an_interval_around_1():
    fast = samples_of([1.0] * 9)
    fast.undecided = "other work"
    assert measure.ratio_of(samples_of([2.0] * 9), fast) == measure.Ratio(2.0, 1.0, 2.0 * measure.EQUAL)


class Disturbed:
    """Rounds of a second each, without a clock of the machine: a script says in which the process waits for a core.

    Another says how long the reference computation takes before each.
    """

    def __init__(self, monkeypatch, waits=(0.0,) * 99, reference_ms=(0.1,) * 99):
        self.waits, self.now_s, self.waited_s = iter(waits), 0.0, 0.0
        times = iter(reference_ms)
        monkeypatch.setattr(measure.disturbance, "reference_ms", lambda: next(times))
        monkeypatch.setattr(measure.disturbance, "waited_s", lambda: self.waited_s)
        clock = SimpleNamespace(perf_counter=lambda: self.now_s, process_time_ns=lambda: 0)
        monkeypatch.setattr(measure, "time", clock)
        monkeypatch.setattr(measure, "warm_up", lambda *_: 1000.0)
        self.made = 0

    def timer(self, call, _):
        self.made += 1
        self.now_s += 1.0
        self.waited_s += (share := next(self.waits))
        return 100.0 * (1 + share)

    def measured(self, rounds):
        calls = {"a": lambda: None}
        return measure.measure_interleaved(calls, rounds=rounds, reporter=Reporter(), timer=self.timer)["a"]


def test_disturbed_rounds_are_left_out_and_others_made_instead(monkeypatch):
    machine = Disturbed(monkeypatch, itertools.cycle([0.0, 0.5, 0.01]))
    samples = machine.measured(12)
    assert (machine.made, samples.undecided) == (18, "")
    assert samples.wall_ms == pytest.approx([100.0, 101.0] * 6)


def test_where_few_rounds_are_undisturbed_in_the_time_for_more_nothing_is_decided_and_the_reason_is_said(monkeypatch):
    machine = Disturbed(monkeypatch, [0.4, 0.0] + [0.3, 0.2] * 50)
    samples = machine.measured(10)
    assert machine.made == 30
    assert samples.undecided == "other work took 25% of the time: 1 of 30 rounds were undisturbed"
    assert samples.wall_ms == pytest.approx([100.0, *[120.0] * 9])


def test_the_time_for_more_rounds_ends_and_what_is_undisturbed_by_then_is_enough_from_a_third_on(monkeypatch):
    machine = Disturbed(monkeypatch, itertools.cycle([0.0, *[0.5] * 4]))
    samples = machine.measured(30)
    assert (machine.made, len(samples.wall_ms), samples.undecided) == (60, 12, "")


def test_rounds_at_another_speed_of_the_processor_are_left_out_whether_it_is_slower_or_faster(monkeypatch):
    machine = Disturbed(monkeypatch, reference_ms=itertools.cycle([0.1, 0.11, 0.2, 0.1, 0.05]))
    samples = machine.measured(12)
    assert (machine.made, len(samples.wall_ms), samples.undecided) == (19, 12, "")


def test_a_processor_that_stays_at_another_speed_is_measured_at_that(monkeypatch):
    machine = Disturbed(monkeypatch, reference_ms=itertools.chain([0.1] * 4, itertools.repeat(0.2)))
    samples = machine.measured(12)
    assert (machine.made, samples.undecided) == (16, "")


def test_one_that_never_keeps_its_speed_decides_nothing_and_the_reason_is_said(monkeypatch):
    machine = Disturbed(monkeypatch, reference_ms=(0.1 * 1.2**at for at in itertools.count()))
    samples = machine.measured(12)
    assert samples.is_throttled
    assert samples.undecided.startswith(
        "the processor changed its speed while measuring (a reference computation took 0.1"
    )
    assert len(samples.wall_ms) == 12


def test_equal_candidates_have_one_inside_the_interval():
    generator = np.random.default_rng(3)
    one, other = (samples_of(generator.lognormal(0, 0.1, 50)) for _ in range(2))
    ratio = measure.ratio_of(one, other)
    assert ratio.low < 1 < ratio.high


def test_different_numbers_of_rounds_cannot_be_compared():
    with pytest.raises(ValueError, match="inhomogeneous"):
        measure.ratio_of(samples_of([1.0] * 3), samples_of([1.0] * 4))


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


def test_the_wall_clock_gives_the_time_of_one_of_the_repeated_calls(monkeypatch):
    now_ns = [0]

    def call():
        now_ns[0] += 3_000_000

    monkeypatch.setattr(measure.time, "perf_counter_ns", lambda: now_ns[0])
    assert measure.wall_clock_ms(call, 100) == pytest.approx(3.0)
