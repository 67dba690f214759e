"""A card made into a recipe, and its estimate against what came out."""

import pytest
from msgspec.structs import replace

from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.advice_applied import applied_recipe, gain_text, outcome_of
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import AdviceOrigin, ModelChoice, Recipe
from ace_studio.records.results import Latency, Result, ResultStatus, RunStatus, TargetRun

RECIPE = Recipe(model=ModelChoice(source="m.py"))
CARD = Advice(
    kind="precision-bf16",
    title="Try bf16",
    why="...",
    estimate="about 2 times as fast",
    quantity=AdviceQuantity.LATENCY,
    estimated_gain=2.0,
    change={"plan": {"default": "bf16"}},
)


def result(speedup=1.5, p50=10.0, **values):
    given = {"sqnr_db": 30.0, "size_bytes": 1000, "metric_drop": 0.02} | values
    latency = Latency(p10=p50, p50=p50, p90=p50, n=3)
    run = TargetRun(target="t", status=RunStatus.OK, latency_ms=latency, speedup=speedup, **given)
    return Result(status=ResultStatus.OK, fingerprint="f", environment={}, runs=(run,), chosen=0)


def test_the_recipe_says_what_was_estimated_and_survives_its_file():
    recipe = applied_recipe(RECIPE, result(), CARD)
    assert recipe.plan.default is Precision.BF16
    assert recipe.advice_from == AdviceOrigin(
        kind="precision-bf16", title="Try bf16", quantity="latency", estimated_gain=2.0, before=1.5
    )
    assert parse_recipe(recipe_text(recipe), name="r") == recipe


def test_a_card_without_a_number_can_be_applied_too():
    card = replace(CARD, kind="dynamic-batch", quantity=AdviceQuantity.TRUST, estimated_gain=None)
    recipe = applied_recipe(RECIPE, result(), card)
    found = outcome_of(recipe.advice_from, result())
    assert found.actual_gain is None and "cannot be put in a number" in found.verdict


@pytest.mark.parametrize(
    ("quantity", "after", "gain", "words"),
    [
        (AdviceQuantity.LATENCY, result(speedup=2.7), 1.8, "80% of the estimate"),
        (AdviceQuantity.LATENCY, result(speedup=1.2), 0.8, "no gain"),
        (AdviceQuantity.SIZE, result(size_bytes=500), 2.0, "100% of the estimate"),
        (AdviceQuantity.FIDELITY, result(sqnr_db=31.0), 1.0, "50% of the estimate"),
        (AdviceQuantity.METRIC, result(metric_drop=0.01), 0.01, "of the metric"),
    ],
)
def test_estimate_and_actual_are_in_one_unit(quantity, after, gain, words):
    recipe = applied_recipe(RECIPE, result(), replace(CARD, quantity=quantity))
    found = outcome_of(recipe.advice_from, after)
    assert found.actual_gain == pytest.approx(gain) and words in found.verdict


def test_threads_are_judged_by_the_clock_because_the_baseline_gets_them_too():
    recipe = applied_recipe(RECIPE, result(p50=10.0), replace(CARD, kind="threads"))
    found = outcome_of(recipe.advice_from, result(p50=5.0))
    assert (found.before, found.after, found.actual_gain) == (10.0, 5.0, 2.0)


def test_a_run_that_was_made_from_no_card_has_no_outcome():
    assert outcome_of(RECIPE.advice_from, result()) is None


def test_a_run_that_failed_says_that_nothing_can_be_told():
    failed = Result(status=ResultStatus.FAILED, fingerprint="f", environment={})
    recipe = applied_recipe(RECIPE, result(), CARD)
    assert outcome_of(recipe.advice_from, failed).actual_gain is None


@pytest.mark.parametrize("quantity", AdviceQuantity)
def test_every_quantity_has_words(quantity):
    assert gain_text(1.5, quantity) and gain_text(None, quantity) == "no number"


def test_the_change_is_told_as_the_recipe_writes_it():
    rules = [{"match": "id:a", "precision": "fp32"}]
    card = replace(CARD, change={"plan": {"default": "int8-static", "rules": rules, "rest": None}})
    assert card.change_text == (
        '[plan] default = "int8-static"; [plan] rules = [{ match = "id:a", precision = "fp32" }]; [plan] without rest'
    )
