"""The theme: the present colours, and how they are applied to Qt."""

import os
import subprocess
import sys

import pytest
from PySide6.QtGui import QColor, QFontDatabase
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from ace_studio.gui.style.theme import THEMES
from ace_studio.gui.widgets.fields import ComboBox, WholeBox
from tests.gui.seeing import contrast

MONOSPACE = """
from PySide6.QtGui import QFontInfo, QGuiApplication
from ace_studio.gui.style.theme import monospace
application = QGuiApplication([])
print(QFontInfo(monospace()).fixedPitch())
"""


@pytest.mark.parametrize("name", THEMES)
def test_outlines_of_controls_are_painted_with_a_contrast_of_3(desk, qtbot, name):
    desk.session.set_setting("theme", name)
    desk.settle()
    page = QWidget()
    page.setProperty("role", "surface")
    layout = QVBoxLayout(page)
    controls = [QPushButton("Run"), ComboBox(), WholeBox()]
    for control in controls:
        layout.addWidget(control)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitExposed(page)
    image = page.grab().toImage()
    for control in controls:
        box = control.geometry()
        painted = QColor(image.pixel(box.left(), box.center().y())).name()
        around = QColor(image.pixel(box.left() - 3, box.center().y())).name()
        assert contrast(painted, around) >= 3, type(control).__name__


@pytest.mark.parametrize("name", THEMES)
def test_the_focus_of_a_check_box_is_a_ring_around_its_text(desk, qtbot, name):
    desk.session.set_setting("theme", name)
    desk.settle()
    page = QWidget()
    page.setProperty("role", "surface")
    layout = QVBoxLayout(page)
    boxes = [QCheckBox("Batch only"), QCheckBox("Keep captures")]
    for each in boxes:
        layout.addWidget(each)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitExposed(page)
    boxes[0].setFocus()
    qtbot.waitUntil(boxes[0].hasFocus)
    for each in boxes:
        image, place = page.grab().toImage(), each.geometry()
        around = QColor(image.pixel(place.left() - 3, place.top() - 3)).name()
        middle = place.center()
        edges = ((place.left(), middle.y()), (place.right(), middle.y()), (middle.x(), place.top()),
                 (middle.x(), place.bottom()))  # fmt: skip
        rings = [contrast(QColor(image.pixel(*edge)).name(), around) for edge in edges]
        if each.hasFocus():
            assert min(rings) >= 3, rings
        else:
            assert max(rings) == 1, "without the keyboard there is no ring"


def test_widgets_that_paint_themselves_hear_of_another_theme_once(desk):
    heard = []
    desk.window.theme.changed.connect(lambda colours: heard.append(colours.name))
    desk.window.theme.choose("light")
    desk.window.theme.choose("light")
    assert heard == ["light"]


@pytest.mark.parametrize("language", ["C.UTF-8", "he_IL.UTF-8"])
def test_code_has_letters_of_one_width_in_every_language(qapp, language):
    if "DejaVu Sans Mono" not in QFontDatabase.families():
        pytest.skip("the fonts that fontconfig answers with are not known here")
    variables = os.environ | {"LANG": language, "LC_ALL": language}
    command = [sys.executable, "-c", MONOSPACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=variables)
    assert done.stdout.strip() == "True"
