"""Advice after a run."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.records.advice import Advice, AdviceOutcome, AdviceQuantity
from ace_studio.records.messages import RunRequest
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import AdviceOrigin, ModelChoice, Recipe
from ace_studio.records.results import CaptureReport
from tests.gui.breaking import words_in
from tests.gui.comparing import press, two_records
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import result_of, show_result

TABLE = layered_table(3)


CARDS = (
    Advice(
        kind="keep-ops-high", title="Keep linear_1 at fp32", why="It alone costs 12 dB", estimate="about +6 dB",
        quantity=AdviceQuantity.FIDELITY, estimated_gain=6.0,
        change={"plan": {"default": "int8-static", "rules": [{"match": "id:linear_1", "precision": "fp32"}]}},
    ),
    Advice(
        kind="lower-precision", title="Try bf16", why="It was not tried", estimate="1.8 times as fast",
        quantity=AdviceQuantity.LATENCY, estimated_gain=1.8, change={"plan": {"default": "bf16"}},
    ),
    Advice(
        kind="calibration-data", title="Use real data", why="Ranges come from random numbers", estimate="",
        quantity=AdviceQuantity.TRUST, change={"calibration": {"inputs": "calibration_inputs"}},
        do_first="Write calibration_inputs()",
    ),
)  # fmt: skip


@pytest.fixture
def advice(trusted):
    trusted.capture(TABLE, CaptureReport(rung="export", ops=1, seconds=1.0))
    show_result(trusted, TABLE, result_of(TABLE, advice=CARDS))
    return trusted.panel("advice")


def test_without_a_run_the_panel_says_when_advice_comes(desk):
    desk.traced()
    assert "After a run" in desk.panel("advice")._empty._text.text()


def test_cards_are_ranked_and_say_what_they_set_and_what_has_to_be_done_first(desk, advice):
    assert [one.card.kind for one in advice.cards] == [card.kind for card in CARDS]
    assert [one.apply_button.isEnabled() for one in advice.cards] == [True, True, False]
    assert "calibration_inputs" in advice.cards[2].apply_button.toolTip()
    assert all(one.accessibleName() for one in advice.cards)


def test_a_card_is_applied_as_a_new_run_that_knows_the_estimate_and_undo_takes_the_choice_back(desk, advice):
    before = desk.document.recipe
    desk.bot.mouseClick(advice.cards[1].apply_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.plan.default is Precision.BF16
    request = desk.engine.requests[-1]
    assert isinstance(request, RunRequest)
    origin = request.recipe.advice_from
    assert (origin.kind, origin.estimated_gain) == ("lower-precision", 1.8)
    assert origin.before == desk.document.result.runs[1].speedup if desk.document.result else True
    assert desk.document.recipe.advice_from == AdviceOrigin()
    assert "Try bf16" in desk.document.undo_label
    desk.do("undo")
    assert desk.document.recipe == before


def test_show_selects_the_ops_that_a_card_is_about(desk, advice):
    desk.bot.mouseClick(advice.cards[0].show_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.selection.op_ids == ("linear_1",)
    assert desk.panel("ops").isVisible()


def test_show_opens_the_panel_of_the_choice_where_no_ops_are_meant(desk, advice):
    desk.bot.mouseClick(advice.cards[2].show_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.workbench.panel("model").isVisible()


def test_after_the_run_the_estimate_stands_beside_what_came_out(desk, advice):
    outcome = AdviceOutcome(
        kind="lower-precision", title="Try bf16", quantity=AdviceQuantity.LATENCY, estimated_gain=1.8, before=2.0,
        after=3.0, actual_gain=1.5, verdict="estimated 1.80 times as fast, it is 1.50 times as fast",
    )  # fmt: skip
    show_result(desk, TABLE, result_of(TABLE, advice=CARDS[:1], advice_from=outcome))
    assert "it is 1.50 times" in advice.outcome.text()
    assert len(advice.cards) == 1


def test_advice_of_a_and_b_is_new_gone_or_the_same(desk):
    first, second = CARDS[:2], (replace(CARDS[0], estimate="about +9 dB"), CARDS[2])
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make"))
    two_records(desk, *((recipe, replace(result_of(TABLE), advice=cards)) for cards in (first, second)))
    panel = desk.panel("advice")
    said = [(card.card.kind, card.difference.text()) for card in panel.cards]
    assert said == [
        ("keep-ops-high", "differs: estimate"), ("calibration-data", "differs: only in B"),
        ("lower-precision", "differs: only in A")]  # fmt: skip
    assert "A: about +6 dB" in words_in(panel.cards[0])
    assert panel.cards[2].y() > panel.cards[0].y(), "what only A has is in a row below"
    assert not any(card.apply_button.isVisible() for card in panel.cards)
    assert [card.show_button.isVisible() for card in panel.cards] == [True, True, False]
    press(desk, "Swap")
    assert [card.card.kind for card in panel.cards] == ["keep-ops-high", "lower-precision", "calibration-data"]


def test_the_same_advice_says_so(desk):
    recipe = Recipe(model=ModelChoice(source="net.py", entry="make"))
    two_records(desk, *((recipe, replace(result_of(TABLE), advice=CARDS[:1])) for _ in range(2)))
    assert [card.difference.text() for card in desk.panel("advice").cards] == ["the same in A and B"]
