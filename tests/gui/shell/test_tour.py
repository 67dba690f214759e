"""The tour leads from the start page to the last step, and each card stands beside what it tells about."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication

from ace_studio.gui.shell.tour import STOPS, Tour


def tours(desk) -> list[Tour]:
    return [one for one in desk.window.findChildren(Tour) if one.isVisible()]


def click(desk, what) -> None:
    desk.bot.mouseClick(what, Qt.MouseButton.LeftButton)
    desk.settle()


@pytest.fixture
def tour(desk) -> Tour:
    click(desk, desk.window.start_page.tour_button)
    return tours(desk)[0]


def place_of(widget, window) -> QRect:
    return QRect(widget.mapTo(window, QPoint()), widget.size())


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700), (640, 480)])
def test_every_card_is_inside_the_window_and_covers_no_button_that_it_tells_about(desk, tour, size):
    desk.window.resize(*size)
    desk.settle()
    assert desk.document.title == "recipe.toml" or desk.document.recipe.model.source
    for stop in STOPS:
        card, told = place_of(tour, desk.window), place_of(tour.target(), desk.window)
        assert tour.target().isVisible()
        assert desk.window.rect().contains(card)
        if stop.step:
            assert not card.intersects(told)
        click(desk, tour.next_button)
    assert tours(desk) == []


def test_the_tour_goes_back_and_ends_with_escape(desk, tour):
    assert not tour.back_button.isEnabled()
    first = tour.target()
    click(desk, tour.next_button)
    assert tour.target() is not first
    click(desk, tour.back_button)
    assert tour.target() is first
    desk.bot.keyClick(tour.next_button, Qt.Key.Key_Escape)
    desk.settle()
    assert tours(desk) == []


def test_return_goes_through_the_tour_and_ends_it(desk, tour):
    told = [tour.target()]
    for _ in STOPS[1:]:
        desk.bot.keyClick(tour.next_button, Qt.Key.Key_Return)
        desk.settle()
        told.append(tour.target())
    assert len(set(map(id, told))) == len(STOPS)
    desk.bot.keyClick(tour.next_button, Qt.Key.Key_Return)
    desk.settle()
    assert tours(desk) == []


def test_the_window_is_used_while_the_card_is_there_and_a_second_tour_replaces_the_first(desk, tour):
    click(desk, desk.window.step_line.buttons["trust"])
    assert not desk.document.needs_trust
    desk.do("tour")
    assert len(tours(desk)) == 1
    assert tours(desk)[0] is not tour


def test_the_tour_goes_on_in_a_window_that_was_minimised(desk, tour):
    desk.window.showMinimized()
    desk.settle()
    desk.window.showNormal()
    desk.settle()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    desk.bot.wait(150)
    click(desk, tour.next_button)
    assert tour.isVisible() and tour._frame.isVisible()
