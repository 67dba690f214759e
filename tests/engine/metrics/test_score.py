"""What an evaluation may return, as a score."""

import numpy as np
import pytest
import torch

from ace_studio.engine.metrics.score import Score, score_from, statistic_score


@pytest.mark.parametrize("value", ["no number", [], None, ["a"]])
def test_what_is_no_score_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        score_from(value, higher_is_better=True)


def test_a_number_is_a_score_without_samples():
    score = score_from(torch.tensor(0.75), higher_is_better=True)
    assert (score.value, score.samples, score.statistic) == (0.75, 0, None)


@pytest.mark.parametrize("values", [[1.0, 0.0, 0.5], (1, 0, 0.5), np.array([1, 0, 0.5]), torch.tensor([1, 0, 0.5])])
def test_the_scores_of_all_samples_have_their_mean_and_a_loss(values):
    score = score_from(values, higher_is_better=True)
    assert score.value == pytest.approx(0.5)
    assert score.samples == 3
    assert list(score.loss) == [-1.0, 0.0, -0.5]
    assert list(score_from(values, higher_is_better=False).loss) == [1.0, 0.0, 0.5]


def test_a_score_is_taken_as_it_is():
    score = Score(value=1.0)
    assert score_from(score, higher_is_better=True) is score


def test_the_value_of_a_statistic_is_that_of_equal_weights():
    score = statistic_score(lambda weights: weights @ np.array([1.0, 3.0]), 2)
    assert (score.value, score.samples) == (4.0, 2)
