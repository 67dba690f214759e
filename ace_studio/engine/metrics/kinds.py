"""The built-in metrics, one row each: outputs and labels of all samples -> a score.

Outputs of a classifier are [n, classes], or [n, classes, ...] or [n, ..., classes] with one label per position; a
label of -100 is left out, as in ``torch.nn.functional.cross_entropy``.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ace_studio.engine.metrics.score import SampleArray, Score, Statistic, mean_score, statistic_score


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


IGNORED_LABEL = -100
_SUM_TOLERANCE = 1e-3
"""Scores of classes that add up to 1 this closely are probabilities."""


@dataclass(frozen=True)
class Metric:
    """One row: the name in the recipe, and how it is computed. `LOWER_IS_BETTER` of the recipe has its direction."""

    name: str
    measure: Callable[[Tensor, Tensor], Score]
    """(outputs [n, ...], labels [n, ...]) -> score. Raises ValueError if the shapes do not fit."""
    needs_labels: bool = True
    """False: the inputs are their own labels (the next token of a text)."""
    parts: Callable[[Tensor, Tensor], Tensor] | None = None
    """(outputs, labels) of one call -> [n, k] that `of_parts` needs, for outputs that are too large to keep."""
    of_parts: Callable[[Tensor], Score] | None = None


def _scores_by_position(outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [n, positions, classes] and labels [n, positions]; the classes may be the last dimension or the second.

    Raises: ValueError if neither fits.
    """
    if labels.is_floating_point():
        raise ValueError(f"the labels are {labels.dtype}, but classes are whole numbers")
    if outputs.ndim == labels.ndim and labels.shape[-1] == 1:
        labels = labels.squeeze(-1)
    n = len(outputs)
    if outputs.shape[:-1] == labels.shape:
        return outputs.reshape(n, -1, outputs.shape[-1]).double(), labels.reshape(n, -1).long()
    if outputs.ndim > 1 and (n, *outputs.shape[2:]) == tuple(labels.shape):
        return outputs.reshape(n, outputs.shape[1], -1).transpose(1, 2).double(), labels.reshape(n, -1).long()
    raise _misfit(outputs, labels)


def _misfit(outputs: Tensor, labels: Tensor) -> ValueError:
    return ValueError(f"outputs {tuple(outputs.shape)} and labels {tuple(labels.shape)} do not fit each other")


def _top_k(k: int) -> Callable[[Tensor, Tensor], Score]:
    def measure(outputs: Tensor, labels: Tensor) -> Score:
        """Part of the labels that are among the k highest scores, per sample over its positions."""
        scores, expected = _scores_by_position(outputs, labels)
        if scores.shape[-1] < 2:
            raise ValueError("the model gives one score per sample; classes need one each")
        is_known = expected != IGNORED_LABEL
        best = scores.topk(min(k, scores.shape[-1]), dim=-1).indices
        is_right = (best == expected.unsqueeze(-1)).any(-1) & is_known
        counted = is_known.sum(1).clamp(min=1)
        return mean_score(_array(is_right.sum(1) / counted), loss=_array(_cross_entropy(scores, expected) / counted))

    return measure


def _cross_entropy(scores: Tensor, expected: Tensor) -> Tensor:
    """Summed over the positions of each sample, nats. Shapes: [n, positions, classes], [n, positions] -> [n]."""
    flat = cross_entropy(scores.flatten(0, 1), expected.flatten(), ignore_index=IGNORED_LABEL, reduction="none")
    return flat.view(expected.shape).sum(1)


def _perplexity(outputs: Tensor, labels: Tensor) -> Score:
    """The exponential of the mean cross-entropy over all positions of all samples."""
    return _perplexity_of_parts(_nats_and_counts(outputs, labels))


def _nats_and_counts(outputs: Tensor, labels: Tensor) -> Tensor:
    """Summed cross-entropy and number of labelled positions of each sample, [n, 2]."""
    scores, expected = _scores_by_position(outputs, labels)
    return torch.stack([_cross_entropy(scores, expected), (expected != IGNORED_LABEL).sum(1).double()], dim=1)


def _perplexity_of_parts(parts: Tensor) -> Score:
    nats, counts = _array(parts[:, 0]), _array(parts[:, 1])
    if not counts.sum():
        raise ValueError("no position has a label")

    def statistic(weights: SampleArray) -> SampleArray:
        return np.asarray(np.exp((weights @ nats) / np.maximum(weights @ counts, 1)))

    return statistic_score(statistic, len(nats), loss=nats / np.maximum(counts, 1))


def _squared_error(outputs: Tensor, labels: Tensor) -> Score:
    """Mean over the elements of each sample, then over samples."""
    if outputs.numel() != labels.numel():
        raise _misfit(outputs, labels)
    n = len(outputs)
    errors = _array((outputs.reshape(n, -1).double() - labels.reshape(n, -1).double()).square().mean(1))
    return mean_score(errors, loss=errors)


def _predicted_classes(outputs: Tensor, labels: Tensor) -> tuple[SampleArray, SampleArray, int]:
    """Predicted and expected class of every sample, and how many classes there are.

    One score per sample is a probability if all are in [0, 1] (more than a half is class 1), else a logit.
    """
    expected = labels.reshape(len(labels), -1)
    if expected.shape[1] != 1:
        raise ValueError(f"the labels are {tuple(labels.shape)}, but each sample needs one class")
    scores = outputs.reshape(len(outputs), -1)
    if scores.shape[1] == 1:
        is_probability = bool(((scores >= 0) & (scores <= 1)).all())
        predicted, count = (scores[:, 0] > (0.5 if is_probability else 0.0)).long(), 2
    else:
        predicted, count = scores.argmax(1), scores.shape[1]
    highest = int(expected.max())
    if expected.is_floating_point() and not bool((expected == expected.round()).all()):
        raise ValueError("the labels are no classes: they are not whole numbers")
    if highest >= count or int(expected.min()) < 0:
        raise ValueError(f"a label is {highest}, but the model tells {count} classes apart")
    return _array(predicted), _array(expected[:, 0]), count


def _f1(outputs: Tensor, labels: Tensor) -> Score:
    """F1 of class 1 if there are two classes, else the plain mean of F1 over the classes that occur."""
    predicted, expected, count = _predicted_classes(outputs, labels)
    classes = np.arange(1, 2) if count == 2 else np.arange(count)
    is_predicted = (predicted[:, None] == classes).astype(np.float64)
    is_expected = (expected[:, None] == classes).astype(np.float64)
    hits = is_predicted * is_expected

    def statistic(weights: SampleArray) -> SampleArray:
        both = weights @ is_predicted + weights @ is_expected
        with np.errstate(divide="ignore", invalid="ignore"):
            by_class = np.where(both > 0, 2 * (weights @ hits) / both, 0.0)
        occurring = (both > 0).sum(axis=1)
        return np.asarray(by_class.sum(axis=1) / np.maximum(occurring, 1))

    return statistic_score(statistic, len(predicted), loss=(predicted != expected).astype(np.float64))


def _area(outputs: Tensor, labels: Tensor) -> Score:
    """Area under the ROC curve: of class 1, or the plain mean over classes, each against all others."""
    scores, is_positive = _scores_and_truth(outputs, labels)
    columns = [area_under_curve(score, truth) for score, truth in zip(scores.T, is_positive.T, strict=True)]

    def statistic(weights: SampleArray) -> SampleArray:
        return np.asarray(np.mean([column(weights) for column in columns], axis=0))

    score = statistic_score(statistic, len(scores))
    if not np.isfinite(score.value):
        raise ValueError("a class has no samples, or all of them: nothing can be told apart")
    return score


def _scores_and_truth(outputs: Tensor, labels: Tensor) -> tuple[SampleArray, SampleArray]:
    """Scores [n, columns] and whether the sample belongs to the column's class [n, columns]."""
    scores = _array(outputs.reshape(len(outputs), -1))
    truth = _array(labels.reshape(len(labels), -1))
    if truth.shape[1] > 1 or scores.shape[1] == 1:
        if truth.shape != scores.shape:
            raise _misfit(outputs, labels)
        return scores, (truth > 0.5).astype(np.float64)
    if scores.shape[1] == 2:
        return scores[:, 1:] - scores[:, :1], (truth == 1).astype(np.float64)
    if not ((scores >= 0).all() and (abs(scores.sum(axis=1) - 1) <= _SUM_TOLERANCE).all()):
        # Logits of different samples are not on one scale; probabilities are.
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    return scores, (truth == np.arange(scores.shape[1])).astype(np.float64)


def _spearman(outputs: Tensor, labels: Tensor) -> Score:
    """Correlation of the ranks of outputs and labels, one number per sample."""
    predicted, expected = outputs.reshape(len(outputs), -1), labels.reshape(len(labels), -1)
    if predicted.shape[1] != 1 or expected.shape[1] != 1:
        raise ValueError(
            f"outputs {tuple(outputs.shape)} and labels {tuple(labels.shape)}: ranks need one number per sample"
        )
    score = statistic_score(rank_correlation(_array(predicted[:, 0]), _array(expected[:, 0])), len(predicted))
    if not np.isfinite(score.value):
        raise ValueError("all outputs, or all labels, are equal: they have no order")
    return score


def _array(values: Tensor) -> SampleArray:
    return np.asarray(values.detach().to("cpu", torch.float64).numpy())


_ROWS = (
    Metric("top-1", _top_k(1)),
    Metric("top-5", _top_k(5)),
    Metric("f1", _f1),
    Metric("auc", _area),
    Metric("spearman", _spearman),
    Metric("mse", _squared_error),
    Metric("perplexity", _perplexity, needs_labels=False, parts=_nats_and_counts, of_parts=_perplexity_of_parts),
)
METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
