"""The contents of a graph view."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gui.looking import (
    block,
    picture_of,
    precision_colouring,
)


def test_a_closed_block_shows_that_a_part_of_it_is_selected(view):
    layers = block(view, "layers")
    plain = picture_of(view)
    view.set_selection(["act_1"])
    share = view.picture.share_of(view.picture.selected, np.array([layers]))
    assert share[0] == pytest.approx(1 / 15)
    assert picture_of(view) != plain


def test_a_block_counts_the_categories_of_its_ops(view):
    view.set_colouring(precision_colouring(view.picture.table))
    counts = view.picture.mix[block(view, "layers") - view.picture.tree.root]
    assert counts.tolist() == [10, 5]
