"""The line that adds an input: its name, its shape and its element type."""

from __future__ import annotations


def test_a_shape_that_is_none_is_marked_and_adds_nothing(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    before = desk.document.recipe
    shapes_panel.form.shape.setText("3xx?")
    shapes_panel.form.add()
    assert shapes_panel.form.shape.property("role") == "bad"
    assert desk.document.recipe == before
