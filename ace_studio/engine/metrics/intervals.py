"""Confidence intervals of a metric, and of the drop between two models that saw the same samples."""

import math

import numpy as np

from ace_studio.engine.metrics.score import SampleArray, Score

DRAWS = 1_000
_LEVEL = (2.5, 97.5)
_Z = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it."""
_LARGEST_BLOCK = 4_000_000
"""Weights held at a time."""


def interval(score: Score, *, seed: int = 0) -> tuple[float, float] | None:
    """The 95 % interval of the metric over the choice of samples; None if only the value is known.

    A share of right samples gets Wilson's interval, because a bootstrap over samples that are all right would claim
    certainty; every other metric gets a percentile bootstrap over samples.

    Source: Wilson 1927; Efron and Tibshirani 1993, chapter 13.
    """
    if score.statistic is None or score.samples < 2:
        return None
    if _is_yes_or_no(score):
        return _wilson(score.value, score.samples)
    return _percentiles(_draws(score, seed=seed))


def drop_interval(
    baseline: Score, score: Score, *, higher_is_better: bool, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of the relative drop, paired: both models on the same samples.

    For samples that are right or wrong it is Agresti and Min's, which has a width even if no sample changed; for other
    metrics a bootstrap that draws the same samples for both. None if samples are unknown or differ in number.

    Source: Agresti and Min 2005, Statistics in Medicine 24, 729-740.
    """
    if score.statistic is None or baseline.statistic is None or score.samples != baseline.samples or score.samples < 2:
        return None
    scale = abs(baseline.value) or 1.0
    sign = 1.0 if higher_is_better else -1.0
    if _is_yes_or_no(score) and _is_yes_or_no(baseline):
        low, high = _agresti_min(baseline, score)
        bounds = sorted((sign * low / scale, sign * high / scale))
        return bounds[0], bounds[1]
    before, after = _draws(baseline, seed=seed), _draws(score, seed=seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        drops = sign * (before - after) / np.where(before == 0, 1.0, np.abs(before))
    return _percentiles(drops)


def _is_yes_or_no(score: Score) -> bool:
    return score.per_sample is not None and bool(np.isin(score.per_sample, (0.0, 1.0)).all())


def _wilson(part: float, n: int) -> tuple[float, float]:
    centre = (part + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(part * (1 - part) / n + _Z**2 / (4 * n * n))
    return (0.0 if part == 0 else centre - half), (1.0 if part == 1 else centre + half)


def _agresti_min(baseline: Score, score: Score) -> tuple[float, float]:
    """Interval of baseline minus score; half a sample is added to each of the four cells of right and wrong."""
    assert baseline.per_sample is not None
    assert score.per_sample is not None
    lost = float(((baseline.per_sample == 1) & (score.per_sample == 0)).sum()) + 0.5
    won = float(((baseline.per_sample == 0) & (score.per_sample == 1)).sum()) + 0.5
    n = baseline.samples + 2
    difference = (lost - won) / n
    half = _Z * math.sqrt(lost + won - (lost - won) ** 2 / n) / n
    return difference - half, difference + half


def _draws(score: Score, *, seed: int) -> SampleArray:
    """The metric of `DRAWS` draws with replacement; equal seeds and numbers of samples draw the same samples."""
    assert score.statistic is not None
    n = score.samples
    random = np.random.default_rng(seed)
    rows = max(1, _LARGEST_BLOCK // n)
    found: list[SampleArray] = []
    for start in range(0, DRAWS, rows):
        chosen = random.integers(0, n, (min(rows, DRAWS - start), n))
        weights = np.zeros(chosen.shape)
        for row, indices in enumerate(chosen):
            weights[row] = np.bincount(indices, minlength=n)
        found.append(score.statistic(weights))
    return np.concatenate(found)


def _percentiles(values: SampleArray) -> tuple[float, float] | None:
    """None if fewer than half of the draws give a number (a rare class was often not drawn)."""
    finite = values[np.isfinite(values)]
    if len(finite) < len(values) / 2:
        return None
    low, high = np.percentile(finite, _LEVEL)
    return float(low), float(high)
