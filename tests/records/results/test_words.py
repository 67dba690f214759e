"""Figures of a result as text."""

import pytest

from ace_studio.records.results import Baseline, Latency, Result, ResultStatus, RunStatus, TargetRun
from ace_studio.records.results.words import digits_of, measured_words, megabytes, ms_words, ratio_words
from ace_studio.records.sweeps import SweepRow


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, ""), (0.7521, "0.7521"), (12.345, "12.35"), (1234.5, "1234"), (0.006412, "0.006412"), (9.99996, "10.00")],
)
def test_latencies_have_four_digits_wherever_they_are_shown(ms, words):
    assert ms_words(ms) == words


def test_four_digits_of_two_latencies_give_the_two_digits_of_their_ratio():
    for base, own in ((0.75213, 0.33728), (12.345, 5.4321), (0.0064123, 0.0047891)):
        assert float(ms_words(base)) / float(ms_words(own)) == pytest.approx(base / own, abs=0.005)


def test_no_figure_is_too_odd_to_be_shown():
    assert [digits_of(value) for value in (0.0, float("inf"), float("nan"), -1.5)] == [".3f"] * 4


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"speedup": 2.0}, "2.00x"),
        ({"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1}, "2.00x (1.90 - 2.10)"),
        ({"speedup": 1.0, "speedup_low": 0.9, "speedup_high": 1.1}, "no difference seen (0.90 - 1.10)"),
        (
            {"speedup_low": 0.9, "speedup": 2.0, "speedup_high": 2.1, "speed_undecided": "why"},
            "not decided (0.90 - 2.10)",
        ),
        ({"speed_undecided": "why"}, "not decided"),
    ],
)
def test_a_run_and_a_row_of_a_sweep_say_a_speed_up_alike(facts, words):
    assert ratio_words(TargetRun(target="t", status=RunStatus.OK, **facts), "speedup") == words
    assert ratio_words(SweepRow(job="1", recipe="r", axes={}, **facts), "speedup") == words


def test_it_is_said_on_what_and_how_often_was_measured():
    latency = Latency(p10=1.0, p50=1.0, p90=1.0, n=28)
    environment = {"measured_input": "1x40", "threads": 2}
    found = Result(
        status=ResultStatus.OK, fingerprint="", environment=environment, baseline=Baseline(latency_ms=latency)
    )
    assert measured_words(found) == "input 1x40, 2 thread(s), 28 rounds"


@pytest.mark.parametrize(("size", "words"), [(None, ""), (1_234_567, "1.235 MB"), (0, "0.000 MB")])
def test_sizes_are_given_in_megabytes(size, words):
    assert megabytes(size) == words
