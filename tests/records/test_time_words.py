"""What a run took, in words."""

import pytest

from ace_studio.records.results import Result, ResultStatus
from ace_studio.records.time_words import seconds_words, time_words


def result(seconds, **phases):
    return Result(status=ResultStatus.OK, fingerprint="", environment={}, seconds=seconds, phase_seconds=phases)


def test_the_longest_phases_come_first_and_the_short_ones_are_left_out():
    words = time_words(result(41.3, load=0.1, measure=9.0, lower=30.2, later=1.5))
    assert words == "41 s: building 30 s, measuring latency 9.0 s, later 1.5 s"


def test_of_an_earlier_version_only_the_whole_is_known_or_nothing():
    assert time_words(result(3.25)) == "3.2 s"
    assert time_words(result(0.0)) == ""


@pytest.mark.parametrize(("seconds", "words"), [(0.44, "0.4 s"), (9.97, "10 s"), (100, "100 s"), (120, "2 min")])
def test_seconds_take_the_unit_that_reads_best(seconds, words):
    assert seconds_words(seconds) == words
