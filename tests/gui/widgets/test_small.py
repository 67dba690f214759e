"""Small widgets that several panels are made of."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QPushButton

from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.small import ElidedLabel, fill_combo, fit_screen, label, tip_text


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


def test_a_name_from_a_model_is_never_markup_nor_reorders_a_line(qtbot):
    name = "<img src='/dev/zero'> \x1b[1m \u202egnp.exe"
    shown = "<img src='/dev/zero'> \\u001b[1m \\u202egnp.exe"
    line, elided = label(name), ElidedLabel()
    for widget in (line, elided):
        qtbot.addWidget(widget)
    elided.setText(name)
    assert (line.text(), elided.text()) == (shown, shown)
    assert line.textFormat() == elided.textFormat() == Qt.TextFormat.PlainText
    assert "<img" not in elided.toolTip()
    assert "&lt;img src=" in elided.toolTip()
    assert tip_text("List<int> of a < b") == "List<int> of a < b"


def test_the_buttons_of_an_empty_panel_are_whole_however_low_it_is(desk):
    desk.open_example()
    desk.session.trust.trust_file()
    desk.panel("run")
    desk.window.resize(784, 434)
    desk.settle()
    graph = desk.window.workbench.panel("graph")
    buttons = [each for each in graph.findChildren(QPushButton) if each.isVisible() and each.text().startswith("Trace")]
    assert buttons
    for each in buttons:
        assert each.height() >= each.sizeHint().height()
        assert each.visibleRegion().boundingRect() == each.rect()
    results = desk.panel("results")
    bench = desk.window.workbench
    bench._rows.setSizes([bench.height(), 0])  # as low as it can be
    desk.settle()
    (run,) = (each for each in results.findChildren(QPushButton) if each.isVisible())
    assert run.height() >= run.sizeHint().height()
    desk.window.resize(1200, 900)
    desk.settle()
    assert graph._empty._text.isVisible() and graph._empty._picture.isVisible()
