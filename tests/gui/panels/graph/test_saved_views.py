"""Named views of the graph."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from ace_studio.gui.panels.graph.saved_views import state_of
from tests.gui.gestures import close_block


@pytest.fixture
def panel(traced):
    return traced.window.workbench.panel("graph")


def save_as(panel, name):
    """Type a name into the menu of the button and press Enter."""
    menu = panel.views.menu()
    menu.aboutToShow.emit()
    field = menu.findChild(QLineEdit)
    QTest.keyClicks(field, name)
    QTest.keyClick(field, Qt.Key.Key_Return)


def names_in(menu):
    menu.aboutToShow.emit()
    return [action.text() for action in menu.actions() if action.text() and action.menu() is None]


def test_a_saved_view_brings_back_open_blocks_place_and_colours(desk, panel):
    close_block(panel.view, "features")
    panel.view.canvas.pan(-40, 30)
    panel.show_colouring("planned")
    before = state_of(panel.view.canvas)
    save_as(panel, "head only")
    panel.view.canvas.open_everything()
    panel.view.fit()
    panel.show_colouring("kind")
    desk.settle()
    assert state_of(panel.view.canvas) != before
    menu = panel.views.menu()
    assert names_in(menu) == ["head only"]
    menu.actions()[0].trigger()
    desk.settle()
    after = state_of(panel.view.canvas)
    assert set(after.open) == set(before.open)
    assert (after.scale, after.x, after.y) == pytest.approx((before.scale, before.x, before.y))
    assert panel.colour_by.currentData() == "planned"


def test_views_are_kept_for_the_model_replaced_by_name_and_removed(desk, panel):
    for name in ("one", "two", "one"):
        save_as(panel, name)
    assert names_in(panel.views.menu()) == ["two", "one"]
    removal = next(action.menu() for action in panel.views.menu().actions() if action.menu() is not None)
    removal.actions()[0].trigger()
    assert names_in(panel.views.menu()) == ["one"]
    desk.session.settings.remember(panel.views._key, [{"name": 3}])
    assert panel.views.saved() == []


def test_a_model_of_the_same_name_in_another_folder_has_its_own_views(desk, panel):
    save_as(panel, "one")
    desk.session._state.change(folder="/elsewhere")
    assert panel.views.saved() == []
