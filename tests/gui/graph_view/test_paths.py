"""Paths between two ops along the edges of the graph."""

from __future__ import annotations


def test_the_path_between_two_ops_follows_the_edges_in_either_order(view):
    forward = view.canvas.show_path("x", "act_1")
    assert forward[0] == "x"
    assert forward[-1] == "act_1"
    assert view.canvas.show_path("act_1", "x") == forward
    assert set(view.selected_ops) == set(forward)
    assert view.canvas.show_path("x", "mask") == ()
