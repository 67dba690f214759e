"""Places of one graph in another."""

from __future__ import annotations

import pytest

from ace_studio.gui.graph_view.colours import family_colouring
from ace_studio.gui.graph_view.picture import Picture
from ace_studio.gui.graph_view.shared_camera import CommonPlaces
from ace_studio.gui.style.colours import DARK
from tests.gui.graph_tables import layered_table, table_of


def picture_of(table):
    return Picture(table, family_colouring(table, DARK))


def test_the_place_of_a_common_op_is_found_in_the_other_graph():
    whole, part = picture_of(layered_table(2)), picture_of(table_of([("stem_linear", "aten.linear.default", "stem")]))
    places = CommonPlaces(whole, part)
    here, there = places._look()
    assert places.other_place(*here[0], from_first=True) == pytest.approx(tuple(there[0]), abs=0.5)
    assert places.other_place(*there[0], from_first=False) == pytest.approx(tuple(here[0]), abs=0.5)


def test_without_common_ops_no_place_matches():
    first, second = picture_of(layered_table(1)), picture_of(table_of([("other", "aten.add.Tensor", "")]))
    places = CommonPlaces(first, second)
    assert places.other_place(0.0, 0.0, from_first=True) is None
    assert places.fits(first, second)
    assert not places.fits(second, first)
