"""The value of a metric with its samples, from which confidence intervals follow."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

SampleArray = NDArray[np.float64]
"""One number per sample, [n] or [draws, n]."""
Statistic = Callable[[SampleArray], SampleArray]
"""Weights of the samples [draws, n] -> the metric of each draw [draws]; all weights 1 give the metric itself."""


@dataclass(frozen=True)
class Score:
    """The metric of one model on the evaluation data."""

    value: float
    samples: int = 0
    """0 if only the value is known."""
    statistic: Statistic | None = None
    """The metric as a function of the samples' weights; None if only the value is known."""
    per_sample: SampleArray | None = None
    """[n] scores whose mean is the metric; None if the metric is no mean."""
    loss: SampleArray | None = None
    """[n] error on each sample, larger is worse; None if single samples are unknown."""
    labels: tuple[str, ...] = ()
    """The label of each sample as text; empty if a sample has several."""
    outputs: tuple[SampleArray, ...] = ()
    """The model's output for each sample, flat, to compare two models on it. May be empty."""


def score_from(value: object, *, higher_is_better: bool) -> Score:
    """The score of an evaluation's result: a number, a `Score`, or the scores of all samples, whose mean is the metric.

    Raises: TypeError or ValueError if it is none of these.
    """
    if isinstance(value, Score):
        return value
    scores = _listed(value)
    if scores is None:
        return Score(value=float(value))  # type: ignore[arg-type]
    if not scores.size:
        raise ValueError("it gave an empty list of scores")
    return mean_score(scores, loss=-scores if higher_is_better else scores)


def mean_score(scores: SampleArray, *, loss: SampleArray | None) -> Score:
    """The score of a metric that is the mean over samples. Shapes: scores [n], loss [n]."""

    def weighted_mean(weights: SampleArray) -> SampleArray:
        return np.asarray(weights @ scores / weights.sum(axis=1))

    return statistic_score(weighted_mean, len(scores), per_sample=scores, loss=loss)


def statistic_score(
    statistic: Statistic, samples: int, *, per_sample: SampleArray | None = None, loss: SampleArray | None = None
) -> Score:
    """The score of a metric that is a function of the samples' weights."""
    value = float(statistic(np.ones((1, samples)))[0])
    return Score(value=value, samples=samples, statistic=statistic, per_sample=per_sample, loss=loss)


def _listed(value: object) -> SampleArray | None:
    """One score per sample as an array; None if the value is one number."""
    if isinstance(value, torch.Tensor):
        value = value.detach().to("cpu", torch.float64).numpy()
    if isinstance(value, list | tuple | np.ndarray):
        found = np.asarray(value, dtype=np.float64)
        return None if found.ndim == 0 else found.reshape(-1)
    return None
