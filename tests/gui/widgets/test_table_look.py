"""The look of all tables, and what a click in one selects."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.widgets.table_look import plain_table, select_rows, show_columns
from ace_studio.gui.widgets.table_model import Column, ColumnsModel


@pytest.fixture
def model():
    model = ColumnsModel()
    model.set_columns(
        [Column(title="name", values=["a", "b", "c"], width=150), Column(title="ms", values=[1.0, 2.0, 3.0], width=60)]
    )
    return model


def shown(qtbot, model, **options):
    table = plain_table(model, "Runs", **options)
    qtbot.addWidget(table)
    table.resize(400, 200)
    table.show()
    return table


def click(qtbot, table, row, modifier=Qt.KeyboardModifier.NoModifier):
    place = table.visualRect(table.model().index(row, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, modifier, place)


def selected(table):
    return sorted(index.row() for index in table.selectionModel().selectedRows())


def test_titles_stand_over_their_cells_in_a_window_from_right_to_left_too(qtbot, qapp, model):
    def header():
        table = shown(qtbot, model)
        return table.horizontalHeader().grab().toImage()

    usual = header()
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        assert header() == usual
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


@pytest.mark.usefixtures("desk")  # with the stylesheet of the window
def test_a_title_that_needs_more_than_its_column_asks_for_is_never_cut(qtbot, model):
    table = shown(qtbot, model)
    show_columns(table, model, [Column(title=title, values=[1], width=10) for title in ("Auftrag", "Messreihe")])
    header = table.horizontalHeader()

    def letters(at):
        picture = header.grab().toImage()
        left, width = header.sectionViewportPosition(at), header.sectionSize(at) - 1
        ground = picture.pixel(left + 1, 2)
        inside = range(left, left + width)
        return sum(picture.pixel(x, y) != ground for x in inside for y in range(2, picture.height() - 3))

    for at in range(2):
        least = letters(at)
        table.setColumnWidth(at, 200)
        assert letters(at) == least


def test_a_click_selects_one_whole_row(qtbot, model):
    table = shown(qtbot, model)
    click(qtbot, table, 0)
    click(qtbot, table, 2, Qt.KeyboardModifier.ControlModifier)
    assert selected(table) == [2]
    assert len(table.selectionModel().selectedIndexes()) == 2


def test_several_rows_can_be_selected_where_that_makes_sense(qtbot, model):
    table = shown(qtbot, model, many=True)
    click(qtbot, table, 0)
    click(qtbot, table, 2, Qt.KeyboardModifier.ControlModifier)
    assert selected(table) == [0, 2]


def test_columns_are_as_wide_as_they_ask_for_and_the_table_has_a_name_for_screen_readers(qtbot, model):
    columns = model.columns
    model.set_columns(())
    table = shown(qtbot, model)
    assert show_columns(table, model, columns)
    assert [table.columnWidth(at) for at in range(2)] == [150, 60]
    table.setColumnWidth(0, 99)
    assert not show_columns(table, model, columns)
    assert [table.columnWidth(at) for at in range(2)] == [99, 60]
    assert table.accessibleName() == "Runs"


def test_rows_are_selected_whatever_key_is_held(qtbot, model):
    table = shown(qtbot, model, many=True)
    click(qtbot, table, 0)
    click(qtbot, table, 2, Qt.KeyboardModifier.ControlModifier)  # Qt takes Ctrl as held until the next event
    select_rows(table, [1, 2])
    assert [index.row() for index in table.selectionModel().selectedRows()] == [1, 2]
    select_rows(table, [])
    assert not table.selectionModel().hasSelection()
