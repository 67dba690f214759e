"""The theme: the present colours, and how they are applied to Qt."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PySide6.QtGui import QColor, QFontDatabase
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from ace_studio.gui.style.colours import THEMES
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
