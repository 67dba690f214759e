"""Metrics of order, as functions of the samples' weights, so that bootstrap draws need no new sorting.

A sample of weight 2 is two equal samples: ties then count as if the sample were there twice.
"""

from __future__ import annotations

import numpy as np

from ace_studio.engine.metrics.score import SampleArray, Statistic


def area_under_curve(scores: SampleArray, is_positive: SampleArray) -> Statistic:
    """Probability that a positive sample scores higher than a negative one, ties half. Shapes: [n], [n].

    Source: Mann and Whitney 1947, from the sum of the positives' mid-ranks. A draw without positives or without
    negatives gives nan.
    """
    ranks = _mid_ranks(scores)

    def statistic(weights: SampleArray) -> SampleArray:
        positive = weights * is_positive
        count = positive.sum(axis=1)
        wins = (positive * ranks(weights)).sum(axis=1) - count**2 / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(wins / (count * (weights.sum(axis=1) - count)))

    return statistic


def rank_correlation(first: SampleArray, second: SampleArray) -> Statistic:
    """Pearson's correlation of mid-ranks (Spearman 1904). Shapes: [n], [n]. If all values are equal, it is nan."""
    ranks_first, ranks_second = _mid_ranks(first), _mid_ranks(second)

    def statistic(weights: SampleArray) -> SampleArray:
        a, b = (
            ranks - (weights * ranks).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
            for ranks in (ranks_first(weights), ranks_second(weights))
        )
        spread = (weights * a**2).sum(axis=1) * (weights * b**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((weights * a * b).sum(axis=1) / np.sqrt(spread))

    return statistic


def _mid_ranks(values: SampleArray) -> Statistic:
    """Weights [draws, n] -> weight below each sample plus half of that of its ties [draws, n]."""
    _, group_of = np.unique(values, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))

    def ranks(weights: SampleArray) -> SampleArray:
        sizes = np.add.reduceat(weights[:, order], starts, axis=1)
        return np.asarray((np.cumsum(sizes, axis=1) - sizes / 2)[:, group_of])

    return ranks
