"""The number of ops that stay high: found in few evaluations, never one that is not accurate enough."""

from __future__ import annotations

import math
import random

import pytest

from ace_studio.engine.pipeline.compress.search.bisection import (
    MOST_EVALUATIONS,
    Evaluation,
    RankedOp,
    SensitivityRanking,
    fewest_high,
    most_high,
)


def _ranking(count=54, seed=0):
    draw = random.Random(seed)
    return SensitivityRanking(
        RankedOp(f"op{i}", 10 ** draw.uniform(-6, -1), draw.uniform(0.5, 2.0)) for i in range(count)
    )


class Model:
    """A model whose noise adds up nearly, with what the ranking cannot know."""

    def __init__(self, ranking, *, needed_db, extra_db=0.0):
        self.ranking, self.needed_db, self.extra_db = ranking, needed_db, extra_db
        self.asked = []

    def __call__(self, count):
        self.asked.append(count)
        fidelity = self.ranking.predicted_db(count) + self.extra_db
        return Evaluation(is_accurate=fidelity >= self.needed_db, sqnr_db=fidelity)


def test_a_model_that_is_good_all_low_takes_one_evaluation():
    model = Model(_ranking(), needed_db=-10.0)
    assert fewest_high(model.ranking, model) == 0
    assert model.asked == [0]


@pytest.mark.parametrize("extra_db", [-4.0, 0.0, 6.0])
@pytest.mark.parametrize("needed_db", [20.0, 30.0, 45.0])
def test_a_fidelity_is_reached_within_a_few_evaluations_at_nearly_the_lowest_cost(needed_db, extra_db):
    model = Model(_ranking(), needed_db=needed_db, extra_db=extra_db)
    found = fewest_high(model.ranking, model, min_db=needed_db)
    best = next(k for k in range(55) if model.ranking.predicted_db(k) + extra_db >= needed_db)
    assert found is not None
    assert found >= best
    assert model.ranking.cost_share(best, found) < 0.05
    assert len(model.asked) <= 5


@pytest.mark.parametrize("needed_db", [15.0, 30.0, 50.0])
def test_a_metric_whose_relation_to_fidelity_is_unknown_takes_some_more(needed_db):
    model = Model(_ranking(), needed_db=needed_db)
    found = fewest_high(model.ranking, model)
    best = next(k for k in range(55) if model.ranking.predicted_db(k) >= needed_db)
    assert found is not None
    assert best <= found
    assert model.ranking.cost_share(best, found) < 0.15
    assert len(model.asked) <= MOST_EVALUATIONS


def test_where_not_even_all_high_is_enough_that_was_tried_and_the_answer_is_none():
    model = Model(_ranking(), needed_db=300.0)
    assert fewest_high(model.ranking, model, min_db=300.0) is None
    assert model.asked[-1] == 54
    assert len(model.asked) <= 3


def test_the_last_evaluation_is_spent_on_all_high():
    ranking = SensitivityRanking(RankedOp(f"op{i}", 1.0) for i in range(500))
    model = Model(ranking, needed_db=150.0)
    assert fewest_high(ranking, model, limit=4) == 500


def test_a_ranking_that_cannot_be_built_ends_at_once():
    asked = []

    def broken(count):
        asked.append(count)
        return Evaluation(is_accurate=False, ends=True)

    assert fewest_high(_ranking(), broken) is None
    assert asked == [0]


def test_no_count_is_evaluated_twice():
    for seed in range(20):
        model = Model(_ranking(seed=seed), needed_db=random.Random(seed).uniform(5, 60), extra_db=seed % 7 - 3)
        fewest_high(model.ranking, model)
        assert len(set(model.asked)) == len(model.asked)


@pytest.mark.parametrize("budget", [0, 1, 10, 30, 54, 80])
def test_as_many_high_as_the_budget_allows(budget):
    ranking = SensitivityRanking(RankedOp(f"op{i}", 1.0 / (i + 1)) for i in range(54))
    asked = []

    def evaluate(count):
        asked.append(count)
        return Evaluation(is_accurate=True, is_affordable=count <= budget)

    found = most_high(ranking, evaluate)
    assert found is not None
    assert min(budget, 54) - 2 <= found <= budget
    assert len(asked) <= MOST_EVALUATIONS


def test_a_budget_below_everything_is_out_of_reach_after_two_evaluations():
    asked = []

    def evaluate(count):
        asked.append(count)
        return Evaluation(is_accurate=True, is_affordable=False)

    assert most_high(_ranking(), evaluate) is None
    assert asked == [54, 0]


def test_an_empty_ranking_has_one_count():
    assert fewest_high(SensitivityRanking([]), lambda _: Evaluation(is_accurate=True)) == 0
    assert fewest_high(SensitivityRanking([]), lambda _: Evaluation(is_accurate=False)) is None
    assert most_high(SensitivityRanking([]), lambda _: Evaluation(is_accurate=True, is_affordable=True)) == 0


OPS = [RankedOp("b", 1e-3, 2.0), RankedOp("a", 1e-2, 1.0), RankedOp("c", 1e-4, 5.0)]


def test_the_most_sensitive_ops_come_first_and_what_is_left_adds_up():
    ranking = SensitivityRanking([RankedOp("b", 1e-3), RankedOp("a", 1e-2), RankedOp("c", 1e-4)])
    assert [op.op_id for op in ranking.ops[:2]] == ["a", "b"]
    assert ranking.predicted_db(1) == pytest.approx(-10 * math.log10(1.1e-3))
    assert ranking.predicted_db(3) == 200.0
    assert ranking.first_above(29.0) == 1


def test_of_equally_sensitive_ops_the_cheaper_one_stays_high_first():
    ranking = SensitivityRanking([RankedOp("dear", 1e-3, 9.0), RankedOp("cheap", 1e-3, 1.0)])
    assert [op.op_id for op in ranking.ops] == ["cheap", "dear"]


def test_the_cost_between_two_counts_is_a_share_of_all():
    ranking = SensitivityRanking(OPS)
    assert ranking.cost_share(0, 3) == 1.0
    assert ranking.cost_share(1, 2) == pytest.approx(2.0 / 8.0)
    assert SensitivityRanking([]).cost_share(0, 0) == 0.0


def test_the_count_between_two_others_halves_the_fidelity_that_lies_between_them():
    ranking = SensitivityRanking(RankedOp(str(i), 10.0**-i) for i in range(1, 7))
    assert ranking.between(0, 4) == 2


def test_noise_that_is_not_finite_is_the_worst_fidelity():
    assert SensitivityRanking([RankedOp("a", math.inf)]).predicted_db(0) == -200.0
