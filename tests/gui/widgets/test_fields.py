"""Fields to choose and to count in: the wheel scrolls what is around them and never changes a value."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ace_studio.gui.shell.start import make_application
from ace_studio.gui.widgets.fields import ComboBox, DecimalBox, NameBox, WholeBox
from ace_studio.gui.widgets.layouts import scrolling

CTRL = Qt.KeyboardModifier.ControlModifier


def wheel(widget: QWidget) -> None:
    """Turn the wheel by one notch over the middle of a widget."""
    window = widget.window()
    QTest.wheelEvent(window.windowHandle(), QPointF(widget.mapTo(window, widget.rect().center())), QPoint(0, -120))


@pytest.fixture
def page(qtbot):
    fields = [ComboBox(), WholeBox(), DecimalBox()]
    fields[0].addItems(["first", "second", "third"])
    fields[0].setCurrentIndex(1)
    content = QWidget()
    content.setMinimumHeight(2000)
    layout = QVBoxLayout(content)
    for field in fields:
        layout.addWidget(field)
    layout.addStretch(1)
    area = scrolling(content)
    qtbot.addWidget(area)
    area.show()
    return area, fields


@pytest.mark.parametrize("at", range(3))
def test_the_wheel_over_a_field_scrolls_the_page_even_if_the_field_has_the_keyboard(page, at):
    area, fields = page
    for focused in (False, True):
        if focused:
            fields[at].setFocus()
        wheel(fields[at])
        assert (fields[0].currentIndex(), fields[1].value(), fields[2].value()) == (1, 0, 0.0)
        assert area.verticalScrollBar().value() > 0


def test_a_combo_box_is_named_by_a_label_as_screen_readers_on_linux_want_it(page):
    _, fields = page
    another = ComboBox()
    another.setAccessibleName("Colour by")
    fields[0].parentWidget().layout().addWidget(another)
    another.show()
    relations = QAccessible.queryAccessibleInterface(another).relations()
    assert [one.text(QAccessible.Text.Name) for one, _ in relations] == ["Colour by"]
    typed = NameBox("Entry", lambda _: None)
    assert QAccessible.queryAccessibleInterface(typed.line).text(QAccessible.Text.Name) == "Entry"


def test_undo_in_a_field_takes_back_the_text_first_and_then_the_choice(desk):
    desk.traced()
    rounds = desk.panel("plan").measure.rounds
    desk.window.activateWindow()
    first = desk.document.recipe.measure.rounds

    def press(keys: str) -> None:
        rounds.selectAll()
        desk.bot.keyClicks(rounds, keys)

    rounds.setFocus()
    desk.bot.waitUntil(rounds.hasFocus)
    press("77")
    desk.bot.keyClick(rounds, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.recipe.measure.rounds == 77
    press("91")
    while rounds.text() != "77":
        desk.bot.keyClick(rounds, Qt.Key.Key_Z, CTRL)
    assert desk.document.recipe.measure.rounds == 77
    desk.bot.keyClick(rounds, Qt.Key.Key_Z, CTRL)
    desk.settle()
    assert desk.document.recipe.measure.rounds == first
    assert rounds.value() == first


@pytest.mark.parametrize("desktop", ["de_DE", "ar_EG", "en_US"])
def test_number_fields_accept_what_they_show_whatever_the_language_of_the_desktop(qtbot, desktop):
    before = QLocale()
    QLocale.setDefault(QLocale(desktop))
    try:
        make_application(None)
        field, whole = DecimalBox(), WholeBox()
    finally:
        QLocale.setDefault(before)
    for box in (field, whole):
        qtbot.addWidget(box)
        box.setRange(0, 100_000)
        box.setValue(12_000)
    assert (field.text(), whole.text()) == ("12000.00", "12000")
    for typed in ("2.5", "2,5"):
        field.setValue(0)
        field.lineEdit().selectAll()
        QTest.keyClicks(field.lineEdit(), typed)
        field.interpretText()
        assert field.value() == 2.5


def test_a_box_whose_width_follows_its_entries_is_never_narrower_than_the_longest(qtbot):
    box = ComboBox()
    qtbot.addWidget(box)
    box.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
    box.show()
    assert box.minimumSizeHint().width() <= box.sizeHint().width()  # Qt keeps both
    box.addItem("as the plan says, with words that take more room")
    longest = box.fontMetrics().horizontalAdvance(box.itemText(0))
    assert box.minimumSizeHint().width() >= box.sizeHint().width() > longest


@pytest.fixture
def rounds(desk, traced):
    field = desk.panel("plan").measure.rounds
    desk.window.activateWindow()
    field.setFocus()
    desk.bot.waitUntil(field.hasFocus)
    field.selectAll()
    return field


def test_what_was_taken_over_by_tab_is_undone_as_a_choice_when_the_field_has_the_keyboard_again(desk, rounds):
    first = desk.document.recipe.measure.rounds
    desk.bot.keyClicks(rounds, "77")
    desk.bot.keyClick(rounds, Qt.Key.Key_Tab)
    desk.settle()
    assert desk.document.recipe.measure.rounds == 77
    desk.bot.keyClick(desk.window.focusWidget(), Qt.Key.Key_Backtab)
    desk.bot.waitUntil(rounds.hasFocus)
    desk.bot.keyClick(rounds, Qt.Key.Key_Z, CTRL)
    desk.settle()
    assert (desk.document.recipe.measure.rounds, rounds.value()) == (first, first)


def test_an_update_that_comes_while_a_number_is_typed_leaves_the_digits(desk, rounds):
    desk.bot.keyClicks(rounds, "12")
    desk.session.choices.set_measure(replace(desk.document.recipe.measure, profile=False))
    desk.settle()
    desk.bot.keyClicks(rounds, "3")
    desk.bot.keyClick(rounds, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.recipe.measure.rounds == 123
    desk.do("undo")
    assert rounds.value() == desk.document.recipe.measure.rounds != 123
