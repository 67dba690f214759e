"""What disturbs a measurement is found, waited for, and told. Nothing here sleeps."""

from types import SimpleNamespace

import pytest

from ace_studio.engine import disturbance, measure
from ace_studio.engine.disturbance import SpeedWatch, measure_steadily
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.messages import Progress
from tests.quiet import really_waited_s


def test_the_time_that_threads_wait_for_a_core_only_grows():
    """Elsewhere than on Linux it is the time without computing, which passes while this one waits."""
    assert 0.0 <= really_waited_s() <= really_waited_s()


@pytest.mark.parametrize(("system", "waited"), [("posix", 3.0), ("nt", 0.0)])
def test_where_no_queue_is_known_it_is_the_time_without_computing_if_the_clock_is_fine_enough(
    system, waited, tmp_path, monkeypatch
):
    monkeypatch.setattr(disturbance, "_TASKS", tmp_path)
    monkeypatch.setattr(disturbance, "os", SimpleNamespace(name=system))
    monkeypatch.setattr(disturbance, "time", SimpleNamespace(perf_counter=lambda: 5.0, process_time=lambda: 2.0))
    assert really_waited_s() == waited


def test_the_waits_of_all_threads_are_added_and_one_that_has_ended_counts_nothing(tmp_path, monkeypatch):
    for name, waited in (("1", 1_500_000_000), ("2", 500_000_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(f"7 {waited} 3\n")
    (tmp_path / "ended" / "schedstat").mkdir(parents=True)
    monkeypatch.setattr(disturbance, "_TASKS", tmp_path)
    assert really_waited_s() == 2.0


class Machine:
    """A processor without time of its own: pauses and looks move the clock, `speed` is what it computes at."""

    def __init__(self, speed=lambda now_s: 1.0):
        self.now_s, self.speed, self.paused = 0.0, speed, []

    def reference(self):
        self.now_s += 0.0001
        return 0.1 / self.speed(self.now_s)

    def pause(self, seconds):
        self.now_s += seconds
        self.paused.append(seconds)

    def watch(self):
        return SpeedWatch(reference=self.reference, clock=lambda: self.now_s)

    def measured(self, watch):
        """Twenty rounds of a second each."""
        for _ in range(20):
            self.now_s += 1.0
            watch.look()
        return self.now_s

    def steadily(self, reporter=None):
        return measure_steadily(self.measured, reporter or Reporter(), new_watch=self.watch, pause=self.pause)


def test_a_steady_processor_is_measured_once_and_not_waited_for():
    machine = Machine()
    assert machine.steadily() == (machine.now_s, "")
    assert machine.now_s < 21
    assert machine.paused == []


def test_a_processor_that_slows_down_is_waited_for_and_measured_again():
    machine = Machine(lambda now_s: 0.7 if 10 < now_s < 25 else 1.0)
    told = []
    found, why = machine.steadily(Reporter(told.append))
    assert why == ""
    assert found == machine.now_s > 40
    assert 4 <= sum(machine.paused) <= 7
    waits = [event.detail for event in told if isinstance(event, Progress)]
    assert waits[0].startswith("the processor slowed down while measuring (a reference computation took 0.1 ms, then ")
    assert "waiting for it, 0 of at most 30 s" in waits[0]
    assert "measuring again" in waits[-1]


def test_one_that_slows_down_again_leaves_the_verdict_open_and_the_wait_has_an_end():
    machine = Machine(lambda now_s: 1.0 / (1.0 + now_s / 20))
    _, why = machine.steadily()
    assert why.startswith("the processor slowed down while measuring")
    assert sum(machine.paused) == pytest.approx(disturbance.LONGEST_WAIT_S)


def test_one_that_stays_slow_is_measured_at_its_new_speed():
    machine = Machine(lambda now_s: 0.7 if now_s > 10 else 1.0)
    assert machine.steadily()[1] == ""


def test_one_that_becomes_faster_is_measured_again_at_once():
    machine = Machine(lambda now_s: 1.0 if now_s > 10 else 0.7)
    assert machine.steadily()[1] == ""
    assert machine.paused == []
    assert machine.now_s > 40


def test_the_ripple_of_turbo_clocks_is_no_change():
    machine = Machine(lambda now_s: 1.0 if now_s < 10 else 0.9)
    assert machine.steadily()[1] == ""
    assert machine.now_s < 21


def test_a_wait_can_be_cancelled():
    machine = Machine(lambda now_s: 1.0 / (1.0 + now_s / 20))
    with pytest.raises(Cancelled):
        machine.steadily(Reporter(is_cancelled=lambda: bool(machine.paused)))
    assert len(machine.paused) == 1


def test_looking_takes_no_more_than_its_share_of_the_time():
    machine = Machine()
    watch = machine.watch()
    for _ in range(1000):
        machine.now_s += 0.001  # rounds of a millisecond beside looks of a tenth of one
        watch.look()
    looks = (machine.now_s - 1.0) / 0.0001
    assert 0.015 < looks * 0.0001 / machine.now_s < 0.0205


def test_a_measurement_of_few_rounds_says_nothing_about_the_speed():
    machine = Machine(lambda now_s: 1.0 / now_s)
    watch = machine.watch()
    for _ in range(disturbance.LEAST_LOOKS - 1):
        machine.now_s += 1.0
        watch.look()
    assert watch.change() == ""


def test_the_speed_is_looked_at_before_each_round_and_after_the_last():
    looks, calls = [], []
    measure.measure_interleaved(
        {"a": lambda: calls.append(1)}, rounds=3, reporter=Reporter(), timer=lambda call, _: call() or 60.0,
        between=lambda: looks.append(len(calls)),
    )  # fmt: skip
    warm = looks[0]
    assert looks == [warm, warm + 1, warm + 2, warm + 3]


def test_the_reference_computation_takes_well_below_a_millisecond():
    assert 0.0 < disturbance.reference_ms() < 50.0
