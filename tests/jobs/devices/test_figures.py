"""Percentiles, the interval of the median, and what makes a figure doubtful."""

import statistics

import pytest

from ace_studio.jobs.devices.figures import doubt, figure_of, latency_of, median_interval, percentile

TIMES = [3.0, 1.0, 2.0, 5.0, 4.0]


def test_percentiles_are_those_of_numpy():
    numpy = pytest.importorskip("numpy")
    for percent in (10, 50, 90, 99):
        assert percentile(TIMES, percent) == pytest.approx(numpy.percentile(TIMES, percent))
    found = latency_of(TIMES, [1.0] * 5)
    assert (found.p50, found.n, found.cpu_p50) == (3.0, 5, 1.0) and latency_of([2.0]).p90 == 2.0


def test_the_interval_of_the_median_holds_it_in_19_of_20_cases():
    import random

    drawn, held = random.Random(1), 0
    for _ in range(400):
        low, high = median_interval([drawn.gauss(10, 1) for _ in range(30)])
        held += low <= 10 <= high
    assert 370 <= held <= 400
    assert median_interval([7.0]) == (7.0, 7.0)


def test_a_busy_or_slower_processor_makes_a_figure_doubtful():
    assert doubt(TIMES, TIMES, 3000, 2900) == ""
    assert "60%" in doubt([1.0] * 10, [0.6] * 10, None, None)
    assert "3000 to 2000 MHz" in doubt(TIMES, TIMES, 3000, 2000)


def test_a_figure_keeps_how_the_device_was():
    states = [
        {"governor": "powersave", "frequency_mhz": mhz, "temperature_c": degrees}
        for mhz, degrees in ((3000, 40), (2900, 55))
    ]
    told = {"wall_ms": TIMES, "cpu_ms": TIMES, "machine": "m", "runtime": "r 1", "before": states[0]}
    figure = figure_of(told | {"after": states[1]}, device="d", session="s", date="t", threads=2, sha256="a")
    assert figure.latency_ms.p50 == statistics.median(TIMES) and figure.governor == "powersave"
    assert (figure.frequency_mhz_before, figure.frequency_mhz) == (3000, 2900)
    assert (figure.temperature_c_before, figure.temperature_c, figure.note) == (40, 55, "")
