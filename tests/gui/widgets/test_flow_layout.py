"""Rows of buttons that wrap."""

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from ace_studio.gui.widgets.layouts import Flow, row


def test_buttons_go_on_in_the_next_line_where_it_is_narrow_and_keep_the_margins(qtbot):
    box = QWidget()
    qtbot.addWidget(box)
    buttons = [QPushButton(f"Button {at}", box) for at in range(4)]
    flow = Flow(*buttons, gap=6)
    flow.setContentsMargins(8, 5, 8, 5)
    box.setLayout(flow)
    wide = flow.sizeHint().width()
    box.resize(wide, 200)
    box.show()
    qtbot.waitExposed(box)
    assert {button.y() for button in buttons} == {5}
    assert buttons[0].x() == 8
    narrow = buttons[0].width() * 2 + 30
    box.resize(narrow, 200)
    flow.setGeometry(QRect(0, 0, narrow, 200))
    assert len({button.y() for button in buttons}) == 2
    assert all(button.geometry().right() < narrow for button in buttons)
    assert flow.heightForWidth(narrow) == 2 * buttons[0].height() + 6 + 10
    buttons[3].hide()
    buttons[2].hide()
    assert flow.heightForWidth(narrow) == buttons[0].height() + 10


def test_a_part_that_is_wider_than_a_line_shrinks_to_it(qtbot):
    box = QWidget()
    qtbot.addWidget(box)
    form, field, add = QWidget(box), QLineEdit(), QPushButton("Add the input")
    form.setLayout(row(field, add))
    flow = Flow(QPushButton("Paste", box), form)
    box.setLayout(flow)
    narrow = form.minimumSizeHint().width() + 20
    assert narrow < form.sizeHint().width()
    box.resize(narrow, 200)
    box.show()
    qtbot.waitExposed(box)
    assert form.geometry().right() < narrow
    assert add.width() >= add.minimumSizeHint().width()
