"""Metrics of order, as functions of the samples' weights, so that draws with replacement need no new sorting.

A sample of weight 2 is two equal samples: ties then count as they would if the sample stood there twice.
"""

from __future__ import annotations

import numpy as np

from ace_studio.engine.metrics.score import Floats, Statistic


def area_under_curve(scores: Floats, is_positive: Floats) -> Statistic:
    """Chance that a positive sample scores higher than a negative one, ties half. Shapes: scores, is_positive [n].

    Source: Mann and Whitney 1947. A draw without positives or without negatives gives nan.
    """
    order = np.argsort(scores, kind="stable")
    groups = _tie_groups(scores[order])
    truth = is_positive[order]

    def statistic(weights: Floats) -> Floats:
        sorted_weights = weights[:, order]
        positive = np.add.reduceat(sorted_weights * truth, groups, axis=1)
        negative = np.add.reduceat(sorted_weights * (1 - truth), groups, axis=1)
        below = np.cumsum(negative, axis=1) - negative
        wins = (positive * (below + negative / 2)).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(wins / (positive.sum(axis=1) * negative.sum(axis=1)))

    return statistic


def rank_correlation(first: Floats, second: Floats) -> Statistic:
    """Pearson's correlation of mid-ranks (Spearman 1904). Shapes: [n], [n]. Equal values throughout give nan."""
    rank_first, rank_second = _weighted_ranks(first), _weighted_ranks(second)

    def statistic(weights: Floats) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        one, other = rank_first(weights), rank_second(weights)
        one = one - (weights * one).sum(axis=1, keepdims=True) / total
        other = other - (weights * other).sum(axis=1, keepdims=True) / total
        spread = (weights * one**2).sum(axis=1) * (weights * other**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((weights * one * other).sum(axis=1) / np.sqrt(spread))

    return statistic


def _weighted_ranks(values: Floats) -> Statistic:
    """Weights [draws, n] -> mid-rank of every sample in each draw [draws, n]."""
    order = np.argsort(values, kind="stable")
    groups = _tie_groups(values[order])
    group_of = np.empty(len(values), dtype=np.intp)
    group_of[order] = np.repeat(np.arange(len(groups)), np.diff([*groups, len(values)]))

    def ranks(weights: Floats) -> Floats:
        sizes = np.add.reduceat(weights[:, order], groups, axis=1)
        return np.asarray((np.cumsum(sizes, axis=1) - sizes / 2)[:, group_of])

    return ranks


def _tie_groups(ordered: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Index at which each run of equal values starts."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
