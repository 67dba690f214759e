"""The built-in metrics against scikit-learn and torch, and the forms that outputs and labels may have."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from ace_studio.engine.metrics import METRICS
from ace_studio.engine.metrics.kinds import area_under_curve, rank_correlation

sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the reference here")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def classes(n: int, count: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, count, (n,), generator=torch.Generator().manual_seed(seed))


def value(name: str, outputs: torch.Tensor, labels: torch.Tensor) -> float:
    return METRICS[name].measure(outputs, labels).value


def test_top_one_and_top_five_are_those_of_scikit_learn():
    outputs, labels = random(200, 12), classes(200, 12)
    for name, k in (("top-1", 1), ("top-5", 5)):
        expected = sklearn_metrics.top_k_accuracy_score(labels, outputs, k=k, labels=range(12))
        assert value(name, outputs, labels) == pytest.approx(expected)


def test_f1_of_two_classes_is_that_of_class_one_and_of_more_the_plain_mean():
    for count, average in ((2, "binary"), (5, "macro")):
        outputs, labels = random(120, count), classes(120, count)
        expected = sklearn_metrics.f1_score(labels, outputs.argmax(1), average=average)
        assert value("f1", outputs, labels) == pytest.approx(expected)


def test_f1_leaves_out_classes_that_nobody_has_and_nobody_chose():
    outputs, labels = random(80, 6), classes(80, 3)
    outputs[:, 3:] = -100
    expected = sklearn_metrics.f1_score(labels, outputs.argmax(1), average="macro")
    assert value("f1", outputs, labels) == pytest.approx(expected)


def test_one_score_per_sample_is_a_logit_unless_all_are_probabilities():
    logits, labels = random(90, 1), classes(90, 2)
    expected = sklearn_metrics.f1_score(labels, logits[:, 0] > 0)
    assert value("f1", logits, labels) == pytest.approx(expected)
    assert value("f1", logits.sigmoid(), labels) == pytest.approx(expected)


def test_auc_is_that_of_scikit_learn_with_ties_and_with_several_classes():
    scores, labels = (random(150) * 3).round(), classes(150, 2)
    assert value("auc", scores, labels) == pytest.approx(sklearn_metrics.roc_auc_score(labels, scores))
    outputs, labels = random(150, 4), classes(150, 4)
    expected = sklearn_metrics.roc_auc_score(labels, outputs.softmax(1), multi_class="ovr", average="macro")
    assert value("auc", outputs, labels) == pytest.approx(expected)
    assert value("auc", outputs.softmax(1), labels) == pytest.approx(expected)
    two = random(150, 2)
    assert value("auc", two, labels > 1) == pytest.approx(
        sklearn_metrics.roc_auc_score(labels > 1, two[:, 1] - two[:, 0])
    )


def test_auc_of_several_marks_per_sample_is_the_mean_over_the_marks():
    outputs, labels = random(100, 3), (random(100, 3, seed=5) > 0).long()
    assert value("auc", outputs, labels) == pytest.approx(sklearn_metrics.roc_auc_score(labels, outputs))


def test_spearman_is_the_correlation_of_mid_ranks():
    first, second = (random(80) * 4).round(), (random(80, seed=2) * 4 + random(80) * 2).round()
    ranks = [np.unique(one.numpy(), return_inverse=True, return_counts=True) for one in (first, second)]
    middles = [(np.cumsum(counts) - counts / 2)[inverse] for _, inverse, counts in ranks]
    assert value("spearman", first, second) == pytest.approx(np.corrcoef(*middles)[0, 1])


def test_mse_and_perplexity_are_those_of_torch():
    outputs, labels = random(40, 3, 2), random(40, 3, 2, seed=3)
    assert value("mse", outputs, labels) == pytest.approx(F.mse_loss(outputs, labels).item(), rel=1e-6)
    tokens = torch.stack([classes(7, 11, seed=seed) for seed in range(6)])
    tokens[2, 4:] = -100
    scores = random(6, 7, 11)
    expected = math.exp(F.cross_entropy(scores.flatten(0, 1), tokens.flatten()).item())
    assert value("perplexity", scores, tokens) == pytest.approx(expected, rel=1e-5)


def test_labels_per_position_may_have_the_classes_last_or_second():
    scores, labels = random(5, 4, 6, 3), torch.stack([classes(24, 3, seed=seed).view(4, 6) for seed in range(5)])
    expected = (scores.argmax(-1) == labels).float().mean().item()
    assert value("top-1", scores, labels) == pytest.approx(expected)
    assert value("top-1", scores.permute(0, 3, 1, 2), labels) == pytest.approx(expected)


def test_the_loss_of_single_samples_is_largest_where_the_model_is_most_wrong():
    outputs = torch.tensor([[9.0, 0.0], [1.0, 0.0], [0.0, 9.0]])
    score = METRICS["top-1"].measure(outputs, torch.tensor([0, 0, 0]))
    assert score.loss.argmax() == 2
    assert score.loss.argmin() == 0


@pytest.mark.parametrize(
    ("name", "outputs", "labels", "words"),
    [
        ("top-1", random(4, 3), random(4), "whole numbers"),
        ("top-1", random(4, 3), classes(5, 3), "do not fit each other"),
        ("top-1", random(4, 1), classes(4, 2).reshape(4, 1), "one score per sample"),
        ("f1", random(4, 3), torch.tensor([0, 1, 2, 3]), "3 classes"),
        ("auc", random(4), torch.ones(4), "no samples"),
        ("spearman", random(4, 2), random(4), "one number per sample"),
        ("spearman", torch.ones(4), random(4), "no order"),
        ("mse", random(4, 2), random(4), "do not fit each other"),
        ("perplexity", random(2, 3, 5), torch.full((2, 3), -100), "no position"),
    ],
)
def test_what_does_not_fit_is_said_in_words(name, outputs, labels, words):
    with pytest.raises(ValueError, match=words):
        METRICS[name].measure(outputs, labels)


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
