"""Small widgets that several panels are made of."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog

from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import ElidedLabel, fill_combo, fit_screen


def test_a_window_is_never_larger_than_its_screen(qtbot):
    window = QDialog()
    qtbot.addWidget(window)
    room = window.screen().availableSize()
    fit_screen(window, 10_000, 200)
    assert (window.width() < room.width(), window.height()) == (True, 200)


def test_a_value_that_is_not_offered_is_added_without_a_signal(qtbot):
    combo, heard = ComboBox(), []
    qtbot.addWidget(combo)
    combo.currentIndexChanged.connect(heard.append)
    fill_combo(combo, [("one", "1"), ("two", "2")], "3")
    assert (combo.currentData(), combo.count(), heard) == ("3", 3, [])


def test_an_elided_label_keeps_the_whole_text_as_its_tip(qtbot):
    line = ElidedLabel()
    qtbot.addWidget(line)
    line.setText("a long text " * 20)
    assert line.toolTip() == "a long text " * 20
    assert line.minimumSizeHint().width() < 50
