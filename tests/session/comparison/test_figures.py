"""Two past runs side by side: what differs in their results, with intervals, and in their choices."""

from msgspec.structs import replace

from ace_studio.records.recipes.recipe import MeasureChoice, ModelChoice, Recipe
from ace_studio.records.results import Latency
from ace_studio.session.comparison.figures import compared_rows, latency_difference, recipe_changes
from tests.session.fake_engine_link import result, target_run


def latency(*samples):
    ordered = sorted(samples)
    return Latency(p10=ordered[0], p50=ordered[len(ordered) // 2], p90=ordered[-1], n=len(samples), samples=samples)


SLOW, FAST = latency(*[10.0, 10.1, 9.9, 10.2, 9.8, 10.0]), latency(*[5.0, 5.1, 4.9, 5.2, 4.8, 5.0])


def test_a_latency_that_halved_is_a_clear_difference_and_the_same_one_is_not():
    found = latency_difference(SLOW, FAST)
    assert found.is_clear
    assert 0.45 < found.low < found.change < found.high < 0.55
    assert not latency_difference(SLOW, SLOW).is_clear


def test_a_difference_no_larger_than_what_the_original_changed_is_noise():
    assert not latency_difference(SLOW, FAST, drift=0.48).is_clear


def test_metrics_differ_only_beyond_both_intervals():
    run = target_run("a")
    one = replace(run, metric=0.90, metric_low=0.88, metric_high=0.92)
    other = replace(run, metric=0.92, metric_low=0.90, metric_high=0.94)
    far = replace(run, metric=0.99, metric_low=0.98, metric_high=1.0)
    assert not compared_rows(result(one), result(other))[-1].metric.is_clear
    assert compared_rows(result(one), result(far))[-1].metric.is_clear


def test_a_target_that_only_one_run_has_is_listed_without_a_change():
    row = compared_rows(result(target_run("a"), target_run("c")), result(target_run("b"), target_run("c")))[-1]
    assert row.name == "b bf16"
    assert row.latency.change is None
    assert row.latency.second is not None


def test_a_target_with_another_precision_is_compared_with_itself():
    run = target_run("a")
    row = compared_rows(result(run), result(replace(run, precision="fp16")))[-1]
    assert row.name == "a bf16 → fp16"
    assert row.latency.change is not None


def test_the_choices_that_differ_are_named_in_words():
    first = Recipe(model=ModelChoice(source="m.py"))
    second = replace(first, measure=MeasureChoice(rounds=7))
    (change,) = recipe_changes(first, second)
    assert (change.name, change.second) == ("measure: rounds", "7")
    assert recipe_changes(first, first) == ()


def test_two_single_runs_are_compared_whatever_their_targets():
    row = compared_rows(result(target_run("a")), result(target_run("b")))[-1]
    assert (row.name, row.runs) == ("a bf16 → b bf16", (0, 0))


def test_rows_say_which_runs_they_are_of():
    first, second = result(target_run("a"), target_run("b")), result(target_run("c"), target_run("b"))
    found = {row.name: row.runs for row in compared_rows(first, second)}
    assert found["b bf16"] == (1, 1)
    assert found["c bf16"] == (None, 0)
