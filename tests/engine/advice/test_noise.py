"""Which few ops hold most of the noise."""

from __future__ import annotations

import pytest

from ace_studio.engine.advice.noise import power, worst_ops


def test_noise_powers_add_and_what_is_left_decides_the_gain():
    rest = [(str(index), 40.0) for index in range(6)]
    ids, gain = worst_ops([("a", 10.0), ("b", 20.0), *rest])
    assert ids == ["a", "b"]
    assert 10 ** (gain / 10) == pytest.approx((power(10) + power(20) + 6 * power(40)) / (6 * power(40)))


def test_error_that_comes_from_none_of_the_ops_stays():
    noise = [("a", 20.0), *((str(index), 40.0) for index in range(6))]
    assert worst_ops(noise, measured_db=10.0) == ([], 0.0)  # ten times as much as all of them together
    assert worst_ops(noise, measured_db=19.0)[0] == ["a"]


def test_noise_that_is_spread_evenly_names_nobody():
    assert worst_ops([(str(index), 20.0) for index in range(20)]) == ([], 0.0)
    assert worst_ops([]) == ([], 0.0)
