"""Calls are timed in turn, and only the median counts."""

from __future__ import annotations

import pytest

from ace_studio.engine.targets.partial import timing


def test_calls_take_turns_and_the_first_two_rounds_do_not_count(monkeypatch):
    clock = iter(range(10_000))
    order = []
    monkeypatch.setattr(timing, "perf_counter", lambda: float(next(clock)) / 1e3)
    times = timing.timed_in_turn([lambda: order.append("a"), lambda: order.append("b")])
    assert order == ["a", "b"] * (timing.ROUNDS + 2)
    assert times == pytest.approx([1.0, 1.0])


def test_rounds_end_when_a_comparison_takes_too_long(monkeypatch):
    monkeypatch.setattr(timing, "LONGEST_S", 0.0)
    order = []
    timing.timed_in_turn([lambda: order.append("a")])
    assert len(order) == 3
