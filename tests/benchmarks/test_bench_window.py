"""What the benchmark of the window makes of its beats, without a window."""

import numpy as np
import pytest

from tests.benchmarks.bench_window import Gesture, figures_of


def _gesture(name: str, gaps_ms: list[float], *, times: int = 1) -> Gesture:
    return Gesture(name, times, np.array(gaps_ms))


def test_a_gesture_costs_its_gaps_without_the_beats_and_divided_by_how_often_it_was_made():
    assert _gesture("type", [0.4, 10.0, 0.5, 20.0], times=2).each_ms == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("gaps_ms", "lost"),
    [
        ([0.5] * 500 + [40.0, 40.0], []),
        ([0.5] * 500 + [51.0], ["window.gap"]),
        ([0.5] * 500 + [40.0, 40.0, 40.0], ["window.gesture"]),
        ([0.5] * 50 + [17.0, 17.0, 17.0], ["window.p99"]),
    ],
)
def test_each_limit_can_be_lost_by_itself(gaps_ms, lost):
    figures = figures_of([_gesture("one", [0.5] * 100), _gesture("other", gaps_ms)], 50_000)
    assert [one.id for one in figures if one.lost] == lost
    assert "other" in figures[0].what


def test_what_arrives_is_no_gesture_but_its_turns_count():
    gap, gesture, _ = figures_of(
        [_gesture("one", [2.0]), _gesture("the graph arrives", [49.0] * 3 + [0.1] * 300)], 50_000
    )
    assert (gap.value, gesture.value) == (49.0, 2.0)


def test_another_size_has_figures_of_its_own_and_no_limits():
    figures = figures_of([_gesture("one", [400.0])], 200_000)
    assert [one.id for one in figures] == ["window.gap.200000", "window.gesture.200000", "window.p99.200000"]
    assert not any(one.lost for one in figures)
