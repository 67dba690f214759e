"""Edges as curves."""

from __future__ import annotations

import numpy as np
import pytest

from ace_studio.gui.graph_view.lines import bend


def test_a_curve_joins_the_ends_of_its_edge_and_leaves_vertically():
    pieces = bend(np.array([[0.0, 0.0, 40.0, 100.0]]), 14)
    assert pieces.shape == (14, 4)
    assert pieces[0, :2].tolist() == [0.0, 0.0]
    assert pieces[-1, 2:].tolist() == pytest.approx([40.0, 100.0])
    assert abs(pieces[0, 2]) < abs(pieces[0, 3])
    assert np.allclose(pieces[1:, :2], pieces[:-1, 2:])
