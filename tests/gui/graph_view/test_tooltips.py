"""Tooltips of ops, blocks and breaks."""

from ace_studio.gui.graph_view.tooltips import tooltip_of
from tests.gui.graph_tables import table_of
from tests.gui.looking import block, row


def test_the_tooltip_tells_op_module_shape_type_device_cost_and_line(view):
    text = tooltip_of(view.picture, row(view, "linear_1"))
    for part in ("aten.linear.default", "layers.1.mlp", "1x8x4x4", "float32", "cpu", "7.00 kFLOP", "512 B", "net.py:8"):
        assert part in text
    assert "15" in tooltip_of(view.picture, block(view, "layers"))


def test_names_in_tooltips_are_text_not_markup(view):
    view.show_graph(table_of([("<img src=x>", "aten.relu.default", "")]))
    assert "<img" not in tooltip_of(view.picture, 0)
