"""The benchmark of mixtures finds the least number of high ops, and its claims can fail."""

import pytest

from ace_studio.engine.measure import Ratio
from tests.benchmarks.bench_mixtures import Pair, fewest, figures_of


@pytest.mark.parametrize("needed", [0, 1, 37, 73, 74])
def test_the_least_number_that_is_accurate_is_found_by_halving(needed):
    asked = []
    found = fewest(74, lambda count: asked.append(count) or count >= needed)
    assert found == needed
    assert len(asked) <= 7
    assert 74 not in asked


def pairs(*ratios, builds=(7, 9)):
    return [Pair(f"m{at}", Ratio(ratio, ratio - 0.02, ratio + 0.02), builds) for at, ratio in enumerate(ratios)]


def lost(*arguments):
    return [one.id for one in figures_of(*arguments) if one.lost]


def test_faster_on_five_of_seven_in_no_more_builds_holds():
    assert lost(pairs(1.2, 1.1, 1.05, 1.04, 1.03, 1.0, 1.01)) == []
    faster, builds, *each = figures_of(pairs(1.2, 1.1, 1.05, 1.04, 1.03, 1.0, 1.01))
    assert (faster.value, faster.unit, builds.value, builds.peer_value) == (5, "of 7", 49, 63)
    assert "m5, m6" in faster.what
    assert len(each) == 7


def test_what_is_slower_or_takes_more_builds_or_failed_is_lost():
    assert lost(pairs(1.2, 1.1, 1.05, 1.04, 1.0, 1.0, 1.01)) == ["mixtures.faster"]
    assert lost(pairs(1.2, 1.1, builds=(9, 8))) == ["mixtures.builds"]
    assert lost(pairs(1.2, 0.9)) == ["mixtures.faster", "mixtures.m1"]
    assert lost(pairs(1.2, 1.1), ["m2"]) == ["mixtures.faster"]
