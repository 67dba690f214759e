"""A metric with what it was made of, so that it can be said how much of it is chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Weights of the samples [draws, n] -> the metric of each draw [draws]; all weights 1 give the metric itself."""


@dataclass(frozen=True)
class Score:
    """What one model reached on the evaluation data."""

    value: float
    """The metric."""
    samples: int = 0
    """How many samples it is over; 0 if only the metric is known."""
    statistic: Statistic | None = None
    """The metric as a function of the samples' weights; None if only the metric is known."""
    per_sample: Floats | None = None
    """[n] scores whose mean is the metric; None if the metric is no mean."""
    loss: Floats | None = None
    """[n] how badly the model does on each sample: larger is worse; None if nothing is known of single samples."""
    labels: tuple[str, ...] = ()
    """What each sample should have given, in words; empty if that is no single word."""
    outputs: tuple[Floats, ...] = ()
    """What the model gave for each sample, flat; to say how far two models are apart on it. May be empty."""


def score_from(value: object, *, higher_is_better: bool) -> Score:
    """Read what an evaluation gives: a number, a `Score`, or the scores of all samples, whose mean is the metric.

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


def mean_score(scores: Floats, *, loss: Floats | None, **known: Any) -> Score:
    """The score of a metric that is the mean over samples. Shapes: scores [n], loss [n]."""

    def weighted_mean(weights: Floats) -> Floats:
        return np.asarray(weights @ scores / weights.sum(axis=1))

    return Score(
        value=float(scores.mean()),
        samples=len(scores),
        statistic=weighted_mean,
        per_sample=scores,
        loss=loss,
        **known,
    )


def _listed(value: object) -> Floats | None:
    """One score per sample as an array; None if the value is one number."""
    if isinstance(value, torch.Tensor):
        value = value.detach().to("cpu", torch.float64).numpy()
    if isinstance(value, list | tuple | np.ndarray):
        found = np.asarray(value, dtype=np.float64)
        return None if found.ndim == 0 else found.reshape(-1)
    return None
