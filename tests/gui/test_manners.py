"""What holds for everything in the window, checked in every panel, chart and dialog."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListView,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QScrollBar,
    QVBoxLayout,
    QWidget,
)

from tests.gui.cut_off import cut_texts, overlaps
from tests.gui.looking import click, row
from tests.gui.touring import tour, tour_of_dialogs, tour_of_difference, tour_of_panels

TEXT_CONTRAST = 4.5
CONTROL_CONTRAST = 3.0
AROUND = 3
"""Pixels on either side of the edge of a control in which its border is looked for."""


def faint_texts(shown: QWidget) -> set[tuple[str, str, float]]:
    """Kind, text and contrast of what is enabled and stands out less than 4.5 : 1: labels, buttons, items of views."""
    pixels, found = _pixels(shown), set()
    for part in _seen(shown, QLabel, QPushButton, QAbstractItemView):
        for words, place in _items_of(part) if isinstance(part, QAbstractItemView) else [(part.text(), part.rect())]:
            if len(words) < 4 or "<" in words:
                continue
            base = part.viewport() if isinstance(part, QAbstractItemView) else part
            contrast = _most(_inside(pixels, place.translated(base.mapTo(shown, QPoint(0, 0)))))
            if contrast < TEXT_CONTRAST:
                found.add((type(part).__name__, words, round(contrast, 2)))
    return found


def _items_of(view: QAbstractItemView) -> Iterator[tuple[str, QRect]]:
    """Text and place of each enabled item that is in sight, where the view itself paints it."""
    model, sight = view.model(), view.viewport().rect()
    if isinstance(view, QHeaderView) or model is None:
        return
    for at in range(min(model.rowCount(view.rootIndex()), 60)):
        for across in range(1 if isinstance(view, QListView) else model.columnCount(view.rootIndex())):
            index = model.index(at, across, view.rootIndex())
            place, words = view.visualRect(index), str(index.data() or "")
            if words and index.flags() & Qt.ItemFlag.ItemIsEnabled and sight.contains(place) and place.width() > 20:
                yield words, place


def faint_controls(shown: QWidget) -> set[tuple[str, str, float]]:
    """Kind, name and contrast of each enabled field whose edge stands out less than 3 : 1 from what is around it."""
    pixels, found = _pixels(shown), set()
    for part in _seen(shown, QLineEdit, QComboBox, QAbstractSpinBox):
        if isinstance(part.parent(), QComboBox | QAbstractSpinBox):
            continue
        place = QRect(part.mapTo(shown, QPoint(0, 0)), part.size())
        row, left = place.center().y(), place.left()
        if left < AROUND or not 0 <= row < pixels.shape[0]:
            continue
        contrast = _most(pixels[row : row + 1, left - AROUND : left + AROUND])
        if contrast < CONTROL_CONTRAST:
            found.add((type(part).__name__, part.accessibleName(), round(contrast, 2)))
    return found


def _seen(shown: QWidget, *kinds: type[QWidget]) -> Iterator[QWidget]:
    for part in shown.findChildren(QWidget):
        whole = isinstance(part, QAbstractItemView) or part.visibleRegion().boundingRect() == part.rect()
        if isinstance(part, kinds) and part.isVisibleTo(shown) and part.isEnabled() and whole:
            yield part


def _inside(pixels: np.ndarray, place: QRect) -> np.ndarray:
    """What is inside of a place without its edge, a pixel wide."""
    rows, across = slice(max(place.top() + 1, 0), place.bottom()), slice(max(place.left() + 1, 0), place.right())
    return pixels[rows, across]


def _most(colours: np.ndarray) -> float:
    """Contrast between the commonest colour and the one that differs most from it."""
    if not colours.size:
        return np.inf
    packed, counts = np.unique(colours.reshape(-1, 3) @ np.array([1 << 16, 1 << 8, 1]), return_counts=True)
    light = _luminance(packed[:, None] >> np.array([16, 8, 0]) & 255)
    ground = light[np.argmax(counts)]
    return float(max((max(one, ground) + 0.05) / (min(one, ground) + 0.05) for one in light))


def _luminance(colours: np.ndarray) -> np.ndarray:
    part = colours / 255.0
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def _pixels(shown: QWidget) -> np.ndarray:
    """Red, green and blue of every pixel of a widget at scale 1."""
    image = shown.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), dtype=np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 4 * image.width()].reshape(image.height(), image.width(), 4)[..., 2::-1].copy()


def turn_wheel(widget: QWidget) -> None:
    """Turn the wheel by one notch over a widget."""
    place, keys = QPointF(widget.rect().center()), Qt.KeyboardModifier.NoModifier
    buttons, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(
        place, QPointF(widget.mapToGlobal(place)), QPoint(), QPoint(0, -120), buttons, keys, phase, False
    )
    QApplication.sendEvent(widget, event)


def value_of(field: QWidget) -> object:
    if isinstance(field, QComboBox):
        return field.currentIndex()
    return field.text() if isinstance(field, QAbstractSpinBox) else field.value()


def turned_over_all(widget: QWidget) -> tuple[set[str], set[str]]:
    """Turn the wheel over each field: the names of those whose value changed, and the classes of all."""
    changed, seen = set(), set()
    for kind in (QComboBox, QAbstractSpinBox, QAbstractSlider):
        for field in widget.findChildren(kind):
            if isinstance(field, QScrollBar):
                continue
            value = value_of(field)
            turn_wheel(field)
            if value_of(field) != value:
                changed.add(field.accessibleName())
            seen.add(type(field).__name__)
    return changed, seen


def nameless(widget: QWidget) -> set[tuple[str, str]]:
    """Class and object name of what takes the keyboard and has no name."""
    kinds = (QAbstractButton, QAbstractItemView, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit)
    found = set()
    for field in widget.findChildren(QWidget):
        inner = isinstance(field.parent(), QComboBox | QAbstractSpinBox | QAbstractItemView)
        takes_keyboard = field.focusPolicy() & Qt.FocusPolicy.TabFocus and field.isVisibleTo(widget)
        if isinstance(field, kinds) and takes_keyboard and not inner and field.focusProxy() is None:
            words = field.text() if isinstance(field, QAbstractButton) else ""
            if not (field.accessibleName() or words):
                found.add((type(field).__name__, field.objectName()))
    return found


@pytest.mark.usefixtures("toured")
def test_the_wheel_over_any_field_of_any_panel_or_dialog_changes_no_value(desk):
    before = desk.document.recipe
    found = {place: turned_over_all(widget) for place, widget in tour(desk)}
    assert {place: changed for place, (changed, _) in found.items() if changed} == {}
    assert {"ComboBox", "WholeBox", "DecimalBox"} <= set().union(*(seen for _, seen in found.values()))
    assert desk.document.recipe == before


@pytest.mark.usefixtures("toured")
def test_everything_that_takes_the_keyboard_has_a_name(desk):
    found = {place: nameless(widget) for place, widget in tour(desk)}
    assert {place: fields for place, fields in found.items() if fields} == {}


def test_panels_that_compare_two_runs_have_the_same_manners(desk):
    faults = {}
    for place, shown in tour_of_difference(desk):
        changed, _ = turned_over_all(shown)
        faults[place] = changed | nameless(shown) | cut_texts(shown) | overlaps(shown)
        faults[place] |= faint_texts(shown) | faint_controls(shown)
    assert {place: found for place, found in faults.items() if found} == {}
    assert len(faults) > 5


def test_every_dialog_fits_the_screen(desk):
    desk.ran()
    room = desk.window.screen().availableSize()
    for name, dialog in tour_of_dialogs(desk):
        assert dialog.width() <= room.width(), name
        assert dialog.height() <= room.height(), name
        assert dialog.minimumSizeHint().height() <= 460, "fits a screen of 1600 x 1000 at 200 %"


@pytest.mark.parametrize("width", [480, 640, 760, 1000])
def test_the_toolbar_shows_every_button_whole_at_any_width(desk, width):
    desk.open_example()
    desk.window.resize(width, 500)
    desk.settle()
    bar = desk.window.toolbar
    shown = [bar.widgetForAction(action) for action in bar.actions() if not action.isSeparator()]
    assert all(button.isVisible() and button.geometry().right() <= bar.width() for button in shown)


def test_the_line_above_the_graph_stays_one_line_high_whatever_is_hidden(desk):
    desk.window.resize(1600, 1000)
    desk.traced()
    line = desk.window.workbench.panel("graph").colour_by.parentWidget()
    for action in ("toggle-bottom", "toggle-side"):
        desk.do(action)
        assert line.height() <= line.sizeHint().height()


class Flashes(QObject):
    """Notes every window that appears."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.seen.append(type(watched).__name__)
        return False


def test_no_part_of_a_panel_flashes_as_a_window_of_its_own_while_it_is_made(desk):
    desk.ran()
    flashes = Flashes()
    QApplication.instance().installEventFilter(flashes)
    for _ in tour_of_panels(desk):
        pass
    QApplication.instance().removeEventFilter(flashes)
    assert flashes.seen == []


def test_the_window_works_from_right_to_left(desk):
    desk.ran()
    application = QApplication.instance()
    application.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        desk.settle()
        view = desk.window.workbench.panel("graph").view
        click(view, row(view, "max_pool2d"))  # an op that is in sight, in no folded block
        assert desk.document.selection.op_ids == ("max_pool2d",)
        table = desk.panel("results").table
        cell = table.visualRect(table.model().index(2, 1))
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=cell.center())
        assert desk.document.selection.run == 1
        assert desk.document.problems == ()
    finally:
        application.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700), None])
def test_no_text_is_cut_off_and_no_control_covers_another(desk, size):
    room = desk.window.screen().availableSize()
    desk.window.resize(*(size or (room.width(), room.height())))
    desk.ran()
    for theme in os.environ.get("ACE_TEST_THEMES", "dark").split():
        desk.session.set_setting("theme", theme)
        found = {place: (cut_texts(shown), overlaps(shown)) for place, shown in tour(desk)}
        assert {place: faults for place, faults in found.items() if any(faults)} == {}, theme


SCREENS = {1: (1280, 800), 1.5: (1920, 1200), 2: (1920, 1080), 3: (3840, 2160)}
"""Scale -> pixels of a screen that is used with it."""
ALL = [pytest.param(scale, "dark light high-contrast", marks=pytest.mark.full) for scale in SCREENS]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "themes"), [(1.5, "high-contrast"), (2, "light"), *ALL])
def test_nothing_is_cut_off_at_any_scale_in_any_theme(tmp_path, scale, themes):
    width, height = SCREENS[scale]
    config = tmp_path / "screens.json"
    config.write_text(json.dumps({"screens": [{"name": "one", "x": 0, "y": 0, "width": width, "height": height}]}))
    environment = {
        "QT_QPA_PLATFORM": f"offscreen:configfile={config}",
        "QT_SCALE_FACTOR": str(scale),
        "ACE_TEST_THEMES": themes,
    }
    check_again("(cut_off_and_no_control and None) or every_dialog_fits or toolbar_shows", environment)


@pytest.mark.slow
def test_nothing_is_cut_off_in_german():
    environment = {"QT_QPA_PLATFORM": "offscreen"}
    check_again("cut_off_and_no_control and not None or every_dialog_fits or toolbar_shows", environment, "in_german")


def check_again(chosen: str, environment: dict[str, str], plugin: str = "") -> None:
    """Check tests of this file in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__, "-k", chosen]
    command += ["-p", f"tests.gui.{plugin}"] if plugin else []
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stdout


def test_a_text_that_is_cut_off_and_a_covered_control_are_found(qtbot):
    shown = QWidget()
    qtbot.addWidget(shown)
    column = QVBoxLayout(shown)
    words, button = QLabel("words that do not fit"), QPushButton("words that do not fit")
    column.addWidget(words)
    column.addWidget(button)
    with qtbot.waitExposed(shown):
        shown.show()
    assert not cut_texts(shown)
    assert not overlaps(shown)
    button.setGeometry(words.x(), words.y(), 20, 20)
    words.resize(30, 20)
    assert len(cut_texts(shown)) == 2
    assert len(overlaps(shown)) == 1


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast"])
@pytest.mark.usefixtures("toured")
def test_painted_texts_and_edges_of_fields_stand_out(desk, theme):
    desk.session.set_setting("theme", theme)
    found = {place: faint_texts(shown) | faint_controls(shown) for place, shown in tour(desk)}
    assert {place: faults for place, faults in found.items() if faults} == {}
    assert len(found) > 30


def test_a_faint_text_and_a_faint_edge_are_found(qtbot):
    shown = QWidget()
    qtbot.addWidget(shown)
    shown.setStyleSheet("QWidget { background: #ffffff; color: #999999 } QLineEdit { border: 1px solid #dddddd }")
    column = QVBoxLayout(shown)
    column.addWidget(QLabel("faint words"))
    column.addWidget(QLineEdit())
    items = QListWidget()
    items.addItem("faint item")
    column.addWidget(items)
    with qtbot.waitExposed(shown):
        shown.show()
    found = {words: contrast for _, words, contrast in faint_texts(shown)}
    assert set(found) == {"faint words", "faint item"}
    assert all(2 < contrast < 3.5 for contrast in found.values())
    assert len(faint_controls(shown)) == 1


def reached(key: Qt.Key, modifier: Qt.KeyboardModifier) -> set[QWidget]:
    """What has the keyboard in turn until it comes round."""
    seen: set[QWidget] = set()
    while (widget := QApplication.focusWidget()) is not None and widget not in seen:
        seen.add(widget)
        QTest.keyClick(widget, key, modifier)
    return seen


@pytest.mark.parametrize("place", ["graph", "model", "shapes", "capture", "plan", "results", "history"])
def test_tab_reaches_every_control_forwards_and_backwards(desk, place):
    desk.ran()
    if place == "graph":
        desk.window.workbench.panel("graph").setFocus()
    else:
        desk.panel(place)
    wanted = {
        widget
        for widget in desk.window.findChildren(QWidget)
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if widget.focusProxy() is None and not isinstance(widget.parent(), QComboBox | QAbstractSpinBox)
    }
    assert len(wanted) > 20
    assert wanted - reached(Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier) == set()
    assert wanted - reached(Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier) == set()
