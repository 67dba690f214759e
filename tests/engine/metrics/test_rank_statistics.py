"""Metrics of order as functions of the samples' weights."""

from __future__ import annotations

import numpy as np
import pytest

from ace_studio.engine.metrics.rank_statistics import area_under_curve, rank_correlation

ONES = np.ones((1, 4))


def test_weights_count_a_sample_as_if_it_stood_there_so_often():
    random = np.random.default_rng(1)
    scores, truth = random.normal(size=20).round(1), (random.random(20) > 0.5).astype(float)
    weights = random.integers(0, 3, (1, 20)).astype(float)
    rows = np.repeat(np.arange(20), weights[0].astype(int))
    ones = np.ones((1, len(rows)))
    assert area_under_curve(scores, truth)(weights)[0] == pytest.approx(
        area_under_curve(scores[rows], truth[rows])(ones)[0]
    )
    other = random.normal(size=20)
    assert rank_correlation(scores, other)(weights)[0] == pytest.approx(
        rank_correlation(scores[rows], other[rows])(ones)[0]
    )


def test_a_tie_between_a_positive_and_a_negative_counts_half():
    truth = np.array([0.0, 1.0, 0.0, 1.0])
    assert area_under_curve(np.array([1.0, 1.0, 1.0, 1.0]), truth)(ONES)[0] == 0.5
    assert area_under_curve(np.array([1.0, 2.0, 2.0, 3.0]), truth)(ONES)[0] == pytest.approx(3.5 / 4)


def test_a_draw_without_negatives_or_without_order_has_no_value():
    truth = np.array([0.0, 1.0, 0.0, 1.0])
    only_positives = truth[None, :]
    assert np.isnan(area_under_curve(np.arange(4.0), truth)(only_positives)[0])
    assert np.isnan(rank_correlation(np.zeros(4), np.arange(4.0))(ONES)[0])


def test_only_the_order_counts_for_a_rank_correlation():
    values = np.array([0.1, 5.0, 2.0, 300.0])
    assert rank_correlation(values, np.log(values))(ONES)[0] == pytest.approx(1.0)
    assert rank_correlation(values, -values)(ONES)[0] == pytest.approx(-1.0)
