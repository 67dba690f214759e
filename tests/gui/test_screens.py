"""The window looks as in the stored pictures: nothing is empty, cut off, or of another colour."""

import os

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from tests.gui.stored_screens import FOLDER, JOURNEYS, SCREENS, SIZE, THEMES, difference, grab, path_of, prepare, save


@pytest.fixture
def small_desk(desk):
    prepare(desk)
    return desk


@pytest.mark.parametrize("start", JOURNEYS, ids=lambda start: next(iter(JOURNEYS[start])))
def test_the_window_looks_as_stored_in_every_theme(small_desk, start):
    start(small_desk)
    small_desk.settle()
    differences = {}
    for theme in THEMES:  # another theme costs more than another panel
        for name, bring in JOURNEYS[start].items():
            dialog = bring(small_desk)
            small_desk.settle()
            image, path = grab(small_desk, theme, dialog), path_of(name, theme)
            if os.environ.get("ACE_RENEW_SCREENS"):
                assert save(image, path)
            differences[path.name] = difference(image, QImage(str(path)))
            if dialog is not None:
                dialog.close()
    differences = {name: words for name, words in differences.items() if words}
    assert differences == {}, "if this is wanted: python -m tests.gui.renew_screens"


def test_sixty_pictures_are_stored():
    assert len({path_of(name, theme) for name in SCREENS for theme in THEMES}) >= 60
    assert {path.name for path in FOLDER.glob("*.png")} == {
        path_of(name, theme).name for name in SCREENS for theme in THEMES
    }


@pytest.mark.usefixtures("qapp")
def test_letters_drawn_a_pixel_off_and_softer_are_no_difference():
    stored = QImage(str(path_of("plan", "light")))
    how = Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
    assert difference(stored.copy(1, 0, *SIZE), stored) == ""
    assert difference(stored.scaled(SIZE[0] // 2, SIZE[1] // 2, *how).scaled(*SIZE, *how), stored) == ""


def test_another_colour_of_one_button_is_a_difference(small_desk):
    small_desk.window.start_page.open_button.setStyleSheet("background: #5fd08a")
    assert "differs" in difference(grab(small_desk, "dark"), QImage(str(path_of("start", "dark"))))


def test_an_emptied_panel_is_a_difference(small_desk):
    panel = small_desk.ran().panel("results")
    assert difference(grab(small_desk, "dark"), QImage(str(path_of("results", "dark")))) == ""
    for child in panel.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
        child.hide()
    assert "differs" in difference(grab(small_desk, "dark"), QImage(str(path_of("results", "dark"))))


def test_another_size_is_a_difference(small_desk):
    small_desk.window.resize(SIZE[0], SIZE[1] - 20)
    assert "instead of" in difference(grab(small_desk, "dark"), QImage(str(path_of("start", "dark"))))
