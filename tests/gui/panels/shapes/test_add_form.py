"""The line that adds an input: its name, its shape and its element type."""

from PySide6.QtCore import Qt


def test_a_shape_that_is_none_is_marked_and_adds_nothing(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    before = desk.document.recipe
    shapes_panel.form.shape.setText("3xx?")
    shapes_panel.form.add()
    assert shapes_panel.form.shape.property("role") == "bad"
    assert desk.document.recipe == before


def test_a_python_value_and_none_are_inputs_too(desk, shapes_panel):
    shapes_panel._use_rows()
    desk.settle()
    form = shapes_panel.form
    for name, kind, text in (("scale", "value", "2.5"), ("bias", "none", "")):
        form.name.setText(name)
        form.dtype.setCurrentText(kind)
        form.shape.setText(text)
        desk.bot.mouseClick(form.button, Qt.MouseButton.LeftButton)
        desk.settle()
    (row,) = desk.document.recipe.inputs.rows
    assert [row[name].values for name in ("scale", "bias")] == ["value 2.5", "none"]
