"""The benchmark of intervals counts wrong claims, and its verdict can fail."""

from collections import Counter

import pytest

from ace_studio.engine.measure import Samples
from tests.benchmarks import bench_intervals
from tests.benchmarks.bench_intervals import LOADS, figures_of, load, outcome


@pytest.mark.parametrize(("wrong", "is_lost"), [(2, False), (3, True)])
def test_more_wrong_claims_than_chance_gives_are_lost(wrong, is_lost):
    found = {"none": Counter(equal=38 - wrong, different=wrong), "bursts": Counter({"equal": 2, "not decided": 9})}
    (figure,) = figures_of(found)
    assert (figure.value, figure.lost) == (wrong, is_lost)
    assert f"{wrong} of 40 decided" in figure.what
    assert "bursts: 0 of 2, 9 not decided" in figure.what


@pytest.mark.parametrize(
    ("slow_ms", "undecided", "said"), [(1.005, "", "equal"), (2.0, "", "different"), (2.0, "other work", "not decided")]
)
def test_a_measurement_says_what_its_interval_says(monkeypatch, slow_ms, undecided, said):
    def measured(calls, **_):
        return {name: Samples([ms] * 9, [ms] * 9, undecided) for name, ms in zip(calls, (slow_ms, 1.0), strict=True)}

    monkeypatch.setattr(bench_intervals, "measure_interleaved", measured)
    assert outcome(4) == said


@pytest.mark.parametrize("name", LOADS)
def test_every_load_starts_and_ends(name):
    with load(name):
        pass
