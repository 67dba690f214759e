"""The header: groups of inputs above, columns below; a click folds."""

from __future__ import annotations

from PySide6.QtCore import Qt

from ace_studio.records.tensors import TensorSpec
from tests.gui.panels.shapes.test_rows import NESTED


def shown(desk, shapes_panel, row):
    shapes_panel._use_rows()
    desk.session.choices.set_rows((row,))
    desk.settle()
    return shapes_panel.table


def test_a_click_on_a_group_folds_it_and_another_unfolds_it(desk, shapes_panel):
    table = shown(desk, shapes_panel, NESTED)
    before = len(table.columns)
    for count in (before - 6, before):
        place = dict(table.groups.group_places())["batch"]
        desk.bot.mouseClick(table.groups.viewport(), Qt.MouseButton.LeftButton, pos=place.center())
        desk.settle()
        assert len(table.columns) == count


def test_groups_stand_over_their_columns_and_tuples_say_so(desk, shapes_panel):
    table = shown(desk, shapes_panel, NESTED)
    places = dict(table.groups.group_places())
    assert list(places) == ["batch", "scale", "bias"]
    assert places["scale"].left() == table.groups.sectionViewportPosition(7)
    desk.session.choices.set_choice("inputs", tuples=("batch",))
    desk.settle()
    assert table.groups.group_text("batch") == "▾ batch (tuple)"


def test_a_group_of_many_inputs_is_folded_at_first(desk, shapes_panel):
    cache = {f"cache.{number}": TensorSpec(shape=(1, 2)) for number in range(8)}
    table = shown(desk, shapes_panel, {"x": TensorSpec(shape=(2,)), **cache})
    assert [column.name for column in table.columns] == ["x.0", "x.dtype", "x.values", "cache.folded"]
