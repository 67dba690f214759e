"""Which precision feeds which."""

from PySide6.QtCore import Qt

from tests.gui.charting import open_chart


def test_the_matrix_counts_changes_and_a_click_selects_their_ops(desk, charts):
    view = open_chart(desk, charts, "transitions")
    names = [view.table.verticalHeaderItem(at).text() for at in range(view.table.rowCount())]
    at, to = names.index("int8-static"), names.index("fp32")
    place = view.table.visualItemRect(view.table.item(at, to)).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("add_0", "linear_1")
    view.which.setCurrentIndex(1)
    view.which.activated.emit(1)
    assert view.table.rowCount() == 1
