"""The colourings of the graph: one row per property, with a letter for each colour."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from ace_studio.gui.ops.colourings import COLOURINGS, by_decibels
from ace_studio.gui.style.theme import DARK, LIGHT
from tests.gui.run_results import TABLE


def test_the_graph_is_coloured_by_sensitivity_by_error_and_by_fate_with_a_legend_that_filters(desk, compared_graph):
    view = compared_graph.view
    for choice, op_id, words in (
        ("sensitivity", "stem_linear", "10 - 20 dB"),
        ("error", "linear_0", "40 - 60 dB"),
        ("fate", "linear_1", "at another precision"),
    ):
        compared_graph.show_colouring(choice)
        desk.settle()
        picture = view.picture
        at = picture.category[TABLE.op_id.index(op_id)]
        assert picture.colouring.categories[at] == words
        assert picture.colouring.letters[at]
    at = compared_graph.view.picture.colouring.categories.index("fused")
    desk.bot.mouseClick(view.legend.entries[at], Qt.MouseButton.LeftButton)
    assert view.picture.hidden_categories == {at}


@pytest.mark.parametrize("choice", [row.id for row in COLOURINGS])
def test_every_colouring_names_its_categories_with_a_colour_and_a_letter(desk, choice):
    desk.ran()
    panel = desk.window.workbench.panel("graph")
    panel.show_colouring(choice)
    desk.settle()
    colouring = panel.view.picture.colouring
    assert colouring.categories
    assert len(colouring.colours) == len(colouring.letters) == len(colouring.categories)
    assert all(colouring.letters)


@pytest.mark.parametrize("colours", [DARK, LIGHT], ids=lambda colours: colours.name)
def test_the_least_faithful_ops_have_the_reddest_colour_and_the_most_marks(colours):
    found = by_decibels("fidelity", {"bad": 3.0, "fair": 25.0, "good": 90.0}, colours)
    hues = {op_id: QColor(found.colours[at]).hue() for op_id, at in found.value_of.items()}
    assert sorted(hues, key=hues.get) == ["bad", "fair", "good"]  # from red to blue
    assert found.letters[found.value_of["bad"]] == "!!"


def test_the_legend_says_that_what_was_chosen_is_not_known_yet(desk):
    desk.traced()
    panel = desk.window.workbench.panel("graph")
    for choice, title in (
        ("actual", "kind of op: actual precision not known yet"),
        ("planned", "planned precision"),
        ("kind", "kind of op"),
    ):
        panel.show_colouring(choice)
        desk.settle()
        assert panel.view.picture.colouring.label == title
