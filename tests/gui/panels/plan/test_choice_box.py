"""A combo box of words: closed it shows the word alone; open, also what each word means."""

from __future__ import annotations

from PySide6.QtCore import Qt

from tests.gui.forms import note


def test_what_a_choice_means_stands_below_it_and_in_the_open_list(desk, int8_plan):
    scheme = int8_plan.precision.scheme
    assert note(scheme, "plan.weights") == "a scale per output channel"
    box = scheme.editors["plan.weights"]
    assert box.currentText() == "per-channel"
    box.fit_list()
    whole = box.itemData(1, int(Qt.ItemDataRole.AccessibleTextRole))
    assert whole == "per-tensor: one scale for all: coarser"
    assert box.view().minimumWidth() > box.fontMetrics().horizontalAdvance(whole)
    box.setFocus()
    desk.bot.keyClick(box, Qt.Key.Key_Down)
    desk.settle()
    assert str(desk.document.recipe.plan.weights) == "per-tensor"
    assert note(scheme, "plan.weights") == "one scale for all: coarser"
