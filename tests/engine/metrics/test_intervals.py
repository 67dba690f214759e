"""How sure a metric is: intervals that cover the truth as often as they say."""

import numpy as np
import pytest
import torch

from ace_studio.engine.metrics import METRICS, Score, drop_interval, interval, score_from


def right_or_wrong(right: int, n: int) -> Score:
    return score_from([1.0] * right + [0.0] * (n - right), higher_is_better=True)


def test_a_metric_without_samples_has_no_interval():
    assert interval(score_from(0.75, higher_is_better=True)) is None
    assert drop_interval(right_or_wrong(3, 4), score_from(0.75, higher_is_better=True), higher_is_better=True) is None


def test_samples_that_are_all_right_do_not_claim_certainty():
    low, high = interval(right_or_wrong(50, 50))
    assert 0.9 < low < 0.95
    assert high == 1.0


def test_the_interval_of_a_mean_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        low, high = interval(score_from(random.exponential(2.0, 80).tolist(), higher_is_better=False))
        covered += low <= 2.0 <= high
    assert 86 <= covered <= 99


def test_the_drop_is_paired_so_equal_changes_of_hard_samples_do_not_widen_it():
    random = np.random.default_rng(0)
    hard = random.normal(5.0, 3.0, 200)
    before = score_from(hard.tolist(), higher_is_better=True)
    after = score_from((hard - 0.1 + random.normal(0, 0.01, 200)).tolist(), higher_is_better=True)
    low, high = drop_interval(before, after, higher_is_better=True)
    assert 0.0 < low < (before.value - after.value) / before.value < high < 0.03
    wide_low, wide_high = interval(after)
    assert wide_high - wide_low > 10 * (high - low)


def test_a_gain_is_a_negative_drop_for_either_direction():
    before, after = right_or_wrong(50, 100), right_or_wrong(90, 100)
    low, high = drop_interval(before, after, higher_is_better=True)
    assert low < (0.5 - 0.9) / 0.5 < high < 0
    low, high = drop_interval(before, after, higher_is_better=False)
    assert low > 0


def test_no_changed_sample_leaves_room_for_a_small_drop():
    low, high = drop_interval(right_or_wrong(90, 100), right_or_wrong(90, 100), higher_is_better=True)
    assert low < 0 < high < 0.05


def test_scores_of_another_number_of_samples_are_not_compared():
    assert drop_interval(right_or_wrong(9, 10), right_or_wrong(9, 12), higher_is_better=True) is None


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_an_interval_around_its_value(name):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 2, (120,), generator=generator)
    outputs = torch.randn(120, 2, generator=generator)
    outputs[:, 1] += labels
    if name in ("mse", "spearman"):
        labels, outputs = labels.float(), outputs[:, 1]
    score = METRICS[name].measure(outputs, labels)
    low, high = interval(score)
    assert low <= score.value <= high
    assert score.samples == 120
