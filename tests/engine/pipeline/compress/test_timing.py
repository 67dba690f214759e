"""Latencies of the baseline and the candidates, in the same rounds."""

from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from ace_studio.engine import measure
from ace_studio.engine.flow import Example, GivenModel
from ace_studio.engine.pipeline.compress import timing
from ace_studio.engine.pipeline.compress.candidates import Candidate
from ace_studio.engine.pipeline.compress.job import CompressionJob
from ace_studio.engine.progress import Reporter
from ace_studio.engine.targets.base import Lowered
from ace_studio.records.recipes.recipe import MeasureChoice, Recipe
from ace_studio.records.results import Baseline, RunStatus, TargetRun


class Clock:
    """Stands still but for the calls of `busy_for`."""

    now_s = 0.0


@pytest.fixture(autouse=True)
def scripted_clock(monkeypatch):
    """No test here depends on what this machine does."""

    def now_ns():
        return int(1e9 * Clock.now_s)

    scripted = SimpleNamespace(perf_counter_ns=now_ns, process_time_ns=now_ns, perf_counter=lambda: Clock.now_s)
    monkeypatch.setattr(measure, "time", scripted)


def busy_for(seconds):
    def call(_):
        Clock.now_s += seconds

    return call


def candidate(name, seconds):
    made = Candidate(SimpleNamespace(name=name), None, TargetRun(target=name, status=RunStatus.OK))
    made.lowered = busy_for(seconds)
    return made


def job(*running, alone=nullcontext, given=None):
    told = []
    made = SimpleNamespace(
        state=SimpleNamespace(baseline=Baseline(), running=running),
        captured=SimpleNamespace(examples=[Example((torch.zeros(1),))], device=torch.device("cpu")),
        loaded=SimpleNamespace(original=None, frontend="torch", given=given),
        reference=busy_for(0.004), recipe=Recipe(measure=MeasureChoice(rounds=4)), reporter=Reporter(), threads=1,
        alone=alone, told=told, tell=told.append, tell_baseline=lambda: told.append("baseline"),
    )  # fmt: skip
    made.timed = partial(CompressionJob.timed, made)
    return made


def test_every_candidate_gets_its_speed_up_from_the_rounds_of_the_baseline():
    fast = candidate("fast", 0.001)
    shared = job(fast)
    timing.measure_latency(shared)
    assert shared.state.baseline.latency_ms.n == fast.run.latency_ms.n == 4
    assert fast.run.speedup == shared.state.baseline.latency_ms.p50 / fast.run.latency_ms.p50 == pytest.approx(4.0)
    assert fast.run.speedup_low <= fast.run.speedup <= fast.run.speedup_high
    assert shared.told == ["baseline", fast]


@pytest.mark.parametrize(
    ("low", "problem", "is_told"), [(1.5, "", True), (0.9, "", False), (1.5, "no such arithmetic", False)]
)
def test_it_is_told_if_the_model_is_faster_as_it_was_given(low, problem, is_told, monkeypatch):
    monkeypatch.setattr(timing, "half_precision_problem", lambda _: problem)
    monkeypatch.setattr(timing.measure, "ratio_of", lambda *_: measure.Ratio(low + 0.1, low, low + 0.2))
    half, taken = torch.bfloat16, []
    given = GivenModel(lambda x: taken.append(x.dtype), halves=(half,), dtypes=(half,))
    shared = job(candidate("fast", 0.002), given=given)
    timing.measure_latency(shared)
    assert set(taken) == (set() if problem else {half})
    codes = [one.code for one in shared.reporter.warnings]
    assert ("faster-as-given" in codes) == is_told
    assert len(shared.told) == 2


def _noting(events):
    @contextmanager
    def alone():
        events.append("alone")
        yield
        events.append("together")

    return alone


def test_nothing_else_computes_while_two_models_are_timed():
    events = []
    shared = job(alone=_noting(events))
    other, own = timing.time_beside(shared, lambda _: events.append("call"), candidate("own", 0.001), rounds=2)
    assert (len(other.wall_ms), len(own.wall_ms)) == (2, 2)
    assert events[0] == "alone"
    assert events[-1] == "together"


def test_a_candidate_that_was_not_built_cannot_be_timed():
    unbuilt = candidate("none", 0.0)
    unbuilt.lowered = None
    with pytest.raises(AssertionError):
        timing.time_beside(job(), busy_for(0.0), unbuilt, rounds=2)


class Wrapped(Lowered):
    """A built candidate whose call takes longer than its runtime alone."""

    runs_in_torch = False

    def __init__(self, alone, around):
        self._alone, self._around = alone, around

    def __call__(self, _):
        busy_for(self._alone + self._around)(None)

    def bare(self, _):
        return lambda: busy_for(self._alone)(None)

    def read_back(self):
        return []

    def save(self, folder):
        return folder


@pytest.mark.parametrize(("limit_ms", "is_told"), [(1000.0, True), (0.0, False)])
def test_of_a_small_model_the_call_of_the_user_is_measured_beside_the_runtime_alone(limit_ms, is_told, monkeypatch):
    monkeypatch.setattr(timing, "SMALL_MS", limit_ms)
    small = candidate("small", 0.0)
    small.lowered = Wrapped(0.0001, 0.002)
    timing.measure_latency(job(small))
    assert (small.run.overhead_us is not None) == is_told
    assert not is_told or small.run.overhead_us == pytest.approx(2000.0)
    assert small.run.latency_ms.p50 == pytest.approx(0.1)


def test_the_fp32_that_a_file_of_onnx_is_compared_with_is_the_file_only_if_its_weights_are_not_rounded(monkeypatch):
    monkeypatch.setattr(timing, "OnnxModule", SimpleNamespace)
    for is_rounded in (False, True):
        low = candidate("eager", 0.001)
        low.note(precision="int8-static")
        shared = job(low)
        monkeypatch.setattr(timing, "timed_call", lambda example, function: lambda: busy_for(0.001)(None))
        shared.reference = SimpleNamespace(is_rounded=is_rounded)
        timing.measure_latency(shared)
        assert (low.run.float_speedup is None) == is_rounded


def test_a_runtime_that_cannot_be_called_alone_has_no_overhead(monkeypatch):
    small = candidate("small", 0.0)
    monkeypatch.setattr(timing, "SMALL_MS", 1000.0)
    small.lowered = Wrapped(0.001, 0.0)
    small.lowered.bare = lambda _: None
    timing.measure_latency(job(small))
    assert small.run.overhead_us is None


def test_a_compressed_candidate_gets_its_speed_up_over_float_in_the_same_runtime_from_the_same_rounds():
    low, exact, other = candidate("one", 0.003), candidate("one", 0.001), candidate("other", 0.001)
    for each, precision in ((low, "int8-static"), (exact, "fp32"), (other, "int8-static")):
        each.note(precision=precision)
    timing.measure_latency(job(low, exact, other))
    assert low.run.float_speedup == pytest.approx(1 / 3)
    assert low.run.float_speedup_low <= low.run.float_speedup <= low.run.float_speedup_high
    assert exact.run.float_speedup is None
    assert other.run.float_speedup is None


def test_fp32_that_is_no_candidate_is_measured_in_the_same_rounds():
    low = candidate("openvino", 0.001)
    low.note(precision="int8-static")
    shared = job(low)
    timing.measure_latency(shared, {"openvino": busy_for(0.002)})
    assert (low.run.float_speedup, low.run.speedup) == pytest.approx((2.0, 4.0))
    assert shared.told == ["baseline", low]


@pytest.mark.parametrize(("is_throttled", "code"), [(False, "contention"), (True, "throttling")])
def test_where_the_rounds_were_disturbed_nothing_is_called_faster_and_the_result_says_why(
    is_throttled, code, monkeypatch
):
    samples = measure.Samples([1.0] * 4, [1.0] * 4, "other work took 60% of the time", is_throttled)
    monkeypatch.setattr(measure, "measure_interleaved", lambda calls, **_: dict.fromkeys(calls, samples))
    own = candidate("openvino", 0.0)
    shared = job(own)
    timing.measure_latency(shared)
    assert own.run.speed_undecided == "other work took 60% of the time"
    assert own.run.speedup is not None
    (warning,) = shared.reporter.warnings
    assert warning.code == code
    assert own.run.speed_undecided in warning.what


def test_in_eager_the_original_is_the_fp32_that_a_candidate_is_compared_with_unless_another_model_was_lowered():
    low = candidate("eager", 0.001)
    low.note(precision="bf16")
    timing.measure_latency(job(low))
    assert low.run.float_speedup == low.run.speedup
    low.note(float_speedup=None)
    pruned = job(low)
    pruned.loaded.original = object()
    timing.measure_latency(pruned)
    assert low.run.float_speedup is None
