"""Colours of the graph: those of the theme, and colourings by a property of the ops."""

import numpy as np
import pytest

from ace_studio.gui.graph_view import Colouring
from ace_studio.gui.graph_view.colours import FAMILY_LETTERS, blend, family_colouring, luminance, text_on
from ace_studio.gui.style.theme import DARK, LIGHT
from ace_studio.records.ops import OpFamily
from tests.gui.graph_tables import layered_table


def test_numbers_become_steps_from_little_to_much():
    colouring = Colouring.from_numbers("latency", {"a": 0.0, "b": 5.0, "c": 10.0, "d": float("nan")}, unit="ms")
    assert colouring.value_of == {"a": 0, "b": 3, "c": 5}
    assert colouring.categories[0].endswith("ms")
    rows = Colouring.from_numbers("latency", np.array([0.0, 5.0, 10.0, np.nan]), unit="ms")
    assert rows.by_row == [0, 3, 5, -1]
    assert rows.categories == colouring.categories


@pytest.mark.parametrize("letters", [("A",), ("A", ""), ("", ""), ("A", "A")])
def test_a_colouring_needs_a_letter_of_its_own_for_each_category(letters):
    with pytest.raises(ValueError, match="one letter"):
        Colouring(label="x", categories=("a", "b"), colours=("#000000", "#ffffff"), letters=letters)


def test_categories_that_start_alike_get_different_letters():
    texts = ("cpu", "cuda:0", "int8", "int8-static", "", "pc")
    colouring = Colouring.from_texts("device", texts, letters={"int8": "8", "int8-static": "8"})
    assert colouring.letters == ("C", "U", "8", "I", "P")


def test_every_kind_of_op_has_a_letter():
    colouring = family_colouring(layered_table(), DARK)
    assert set(FAMILY_LETTERS) == set(OpFamily)
    assert len(set(colouring.letters)) == len(OpFamily)


def test_text_is_readable_on_every_colour_of_both_themes():
    for theme in (DARK, LIGHT):
        for fill in (*theme.families, *theme.scale, theme.block):
            ink, ground = luminance(text_on(fill)), luminance(fill)
            assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.0
    assert len(DARK.families) == len(LIGHT.families) == len(OpFamily)
    assert blend("#ffffff", "#000000", share=0.5) == "#808080"
