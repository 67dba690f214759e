"""What a card of advice can be used for."""

import pytest

from ace_studio.records.advice import Advice, AdviceQuantity

CHANGE = {"plan": {"default": "bf16"}}


@pytest.mark.parametrize(
    ("change", "do_first", "can_apply"),
    [(CHANGE, "", True), (CHANGE, "pip install x", False), ({}, "write a function", False), ({}, "", False)],
)
def test_a_card_can_be_applied_if_it_changes_the_recipe_and_nothing_is_left_to_do_by_hand(change, do_first, can_apply):
    card = Advice(
        kind="k", title="t", why="w", estimate="e", quantity=AdviceQuantity.TRUST, change=change, do_first=do_first
    )
    assert card.can_apply is can_apply
