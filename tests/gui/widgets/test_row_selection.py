"""The selection of a table of very many rows: gestures as everywhere, one flag per row."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from ace_studio.gui.widgets.row_selection import RowsTable
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from tests.gui.looking import CTRL, LEFT, NONE, SHIFT


@pytest.fixture
def table(qtbot):
    model = ColumnsModel()
    model.set_columns([Column(title="n", values=range(1000), is_number=True)])
    made = RowsTable(model)
    model.setParent(made)
    qtbot.addWidget(made)
    made.resize(300, 400)
    made.show()
    qtbot.waitExposed(made)
    return made


def click(table, row, keys=NONE, button=LEFT):
    QTest.mouseClick(table.viewport(), button, keys, table.visualRect(table.model().index(row, 0)).center())


def test_click_shift_and_control_select_as_in_every_table(table):
    click(table, 1)
    click(table, 4, SHIFT)
    assert table.chosen.rows == [1, 2, 3, 4]
    click(table, 3, CTRL)
    click(table, 6, CTRL)
    assert table.chosen.rows == [1, 2, 4, 6]
    click(table, 0)
    assert table.chosen.rows == [0]


def test_keys_select_everything_and_extend_by_a_row(table):
    click(table, 2)
    QTest.keyClick(table, Qt.Key.Key_Down, SHIFT)
    assert table.chosen.rows == [2, 3]
    QTest.keyClick(table, Qt.Key.Key_A, CTRL)
    assert len(table.chosen.rows) == 1000


def test_the_selection_survives_filter_and_sorting(table):
    table.show_rows([5, 50, 500])
    table.model().set_filter("50")
    table.model().sort(0, Qt.SortOrder.DescendingOrder)
    assert table.chosen.rows == [5, 50, 500]
    click(table, 0, CTRL)
    assert table.chosen.rows == [5, 50, 500, 950]


def test_a_right_click_inside_the_selection_keeps_it_for_the_menu(table):
    table.show_rows(list(range(500)))
    click(table, 3, button=Qt.MouseButton.RightButton)
    assert len(table.chosen.rows) == 500
    table.show_rows([1])
    click(table, 3, button=Qt.MouseButton.RightButton)
    assert table.chosen.rows == [3]


def test_every_second_row_is_shown_as_selected_without_a_range_for_each(table):
    table.show_rows(list(range(0, 1000, 2)))
    assert table.chosen.selection().size() == 0
    image = table.viewport().grab().toImage()
    first, second = (image.pixelColor(2, table.rowViewportPosition(row) + table.rowHeight(row) // 2) for row in (0, 1))
    assert first != second


def test_a_gesture_tells_once_and_the_program_never(table, qtbot):
    told = []
    table.chosen.chosen_by_hand.connect(lambda: told.append(table.chosen.rows))
    table.show_rows([7])
    QTest.keyClick(table, Qt.Key.Key_A, CTRL)
    assert [len(rows) for rows in told] == [1000]
