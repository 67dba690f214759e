"""Ops in the order of their sensitivity, and what the ranking predicts."""

from __future__ import annotations

import math

import pytest

from ace_studio.engine.pipeline.compress.search.ranking import RankedOp, SensitivityRanking

OPS = [RankedOp("b", 1e-3, 2.0), RankedOp("a", 1e-2, 1.0), RankedOp("c", 1e-4, 5.0)]


def test_the_most_sensitive_ops_come_first_and_what_is_left_adds_up():
    ranking = SensitivityRanking([RankedOp("b", 1e-3), RankedOp("a", 1e-2), RankedOp("c", 1e-4)])
    assert [op.op_id for op in ranking.ops[:2]] == ["a", "b"]
    assert ranking.predicted_db(1) == pytest.approx(-10 * math.log10(1.1e-3))
    assert ranking.predicted_db(3) == 200.0
    assert ranking.first_above(29.0) == 1


def test_of_equally_sensitive_ops_the_cheaper_one_stays_high_first():
    ranking = SensitivityRanking([RankedOp("dear", 1e-3, 9.0), RankedOp("cheap", 1e-3, 1.0)])
    assert [op.op_id for op in ranking.ops] == ["cheap", "dear"]


def test_the_cost_between_two_counts_is_a_share_of_all():
    ranking = SensitivityRanking(OPS)
    assert ranking.cost_share(0, 3) == 1.0
    assert ranking.cost_share(1, 2) == pytest.approx(2.0 / 8.0)
    assert SensitivityRanking([]).cost_share(0, 0) == 0.0


def test_the_count_between_two_others_halves_the_fidelity_that_lies_between_them():
    ranking = SensitivityRanking(RankedOp(str(i), 10.0**-i) for i in range(1, 7))
    assert ranking.between(0, 4) == 2


def test_noise_that_is_not_finite_is_the_worst_fidelity():
    assert SensitivityRanking([RankedOp("a", math.inf)]).predicted_db(0) == -200.0
