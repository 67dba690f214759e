"""The order of cards, and how many there are."""

import pytest
from msgspec.structs import replace

from ace_studio.engine.advice import advise
from ace_studio.engine.advice.accuracy_rules import keep_the_worst_ops
from ace_studio.engine.advice.cards import free_the_batch, give_calibration_data
from ace_studio.records.advice import AdviceQuantity
from ace_studio.records.recipes.recipe import AdviceOrigin, Goal, Objective, TargetsChoice
from ace_studio.records.results import Warning
from ace_studio.records.tensors import DimVerdict
from tests.engine.advice.finished_run import FLOAT_RUN, HERE, RECIPE, RUN, applies, captured, facts, op_report, scan


def test_what_the_goal_misses_comes_first_and_three_are_enough():
    misses = replace(RECIPE, goal=Goal(min_sqnr_db=30.0), targets=TargetsChoice(names=("onnxruntime",)))
    everything = {"sensitivity": scan(5.0, 30.0, 30.0), "targets": HERE, "cores": 16}
    cards = advise(facts(replace(RUN, target="inductor"), recipe=misses, **everything))
    assert len(cards) == 3 and cards[0].kind == "keep-ops-high"
    fast = replace(RECIPE, targets=TargetsChoice(names=("onnxruntime",)))
    assert advise(facts(replace(RUN, sqnr_db=35.0), recipe=fast, **everything))[0].quantity is AdviceQuantity.LATENCY


def test_a_large_gain_that_helps_no_missed_bound_comes_after_what_helps_one():
    recipe = replace(RECIPE, goal=Goal(max_latency_ratio=0.1, optimize=Objective.ACCURACY))
    slow = replace(RUN, target="inductor", speedup=1.2)
    noise = scan(5.0, 90.0, 90.0)
    assert keep_the_worst_ops(facts(slow, recipe=recipe, sensitivity=noise)).estimated_gain == 60.0
    cards = advise(facts(slow, recipe=recipe, targets=HERE, sensitivity=noise))
    assert [card.quantity for card in cards[:2]] == [AdviceQuantity.LATENCY] * 2


def test_a_card_is_not_given_again_to_the_run_that_was_made_from_it():
    recipe = replace(RECIPE, advice_from=AdviceOrigin(kind="keep-ops-high", quantity="fidelity"))
    kinds = {card.kind for card in advise(facts(recipe=recipe, sensitivity=scan(5.0, 30.0, 30.0)))}
    assert kinds and "keep-ops-high" not in kinds


def test_a_run_in_which_nothing_worked_has_no_advice():
    assert advise(facts(chosen=None, runs=())) == ()


@pytest.mark.parametrize(
    ("code", "words"), [("fake-calibration", "made up"), ("calibration-from-tracing", "traced with")]
)
def test_ranges_without_data_are_the_first_card(code, words):
    cards = advise(facts(warnings=(Warning(code=code, what="..."),), sensitivity=scan(5.0, 30.0, 30.0), targets=HERE))
    assert cards[0].kind == "calibration-data" and words in cards[0].why and cards[0].estimated_gain is None
    assert give_calibration_data(facts()) is None


def test_ranges_matter_only_where_an_op_of_the_chosen_run_has_them():
    fake = (Warning(code="fake-calibration", what="..."),)
    at_fp32 = replace(RUN, ops=(op_report("conv2d", planned="int8-static"),))
    assert give_calibration_data(facts(at_fp32, warnings=fake)) is None
    both = facts(runs=(FLOAT_RUN, RUN), chosen=0, warnings=fake)
    assert give_calibration_data(both) is None
    mixed = replace(RUN, ops=(op_report("linear"), op_report("conv2d", actual="int8-static")))
    assert give_calibration_data(facts(mixed, warnings=fake)) is not None


def test_a_fixed_batch_can_be_freed():
    given = facts(capture=captured(DimVerdict.STATIC))
    card = free_the_batch(given)
    assert {str(value) for value in applies(card, given).inputs.dims.values()} == {"dynamic"}
    assert free_the_batch(facts(capture=captured(DimVerdict.DYNAMIC))) is None
    assert free_the_batch(facts(recipe=applies(card, given), capture=captured(DimVerdict.STATIC))) is None
