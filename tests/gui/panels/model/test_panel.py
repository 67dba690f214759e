"""The model panel: the file, what opening it would run, and the functions to use."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton

from tests.gui.gestures import choose


def test_the_model_panel_offers_the_callables_of_the_file(desk):
    desk.open_example()
    panel = desk.panel("model")
    offered = [panel.entry.itemData(at) for at in range(panel.entry.count())]
    assert "make_model" in offered
    choose(desk, panel.evaluate, "nothing: compare outputs")
    assert desk.document.recipe.evaluate.function == ""


def test_calibration_inputs_come_from_a_file_or_a_folder_of_images(desk, monkeypatch):
    desk.traced()
    panel, folder = desk.panel("model"), desk.document.folder
    buttons = {one.accessibleName(): one for one in panel.findChildren(QPushButton)}
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (f"{folder}/seen.npz", ""))
    desk.bot.mouseClick(buttons["Calibration inputs from a file"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.recipe.calibration.inputs == "seen.npz"
    assert panel.calibration.currentText() == "seen.npz"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: f"{folder}/pictures")
    desk.bot.mouseClick(buttons["Calibration inputs from a folder of images"], Qt.MouseButton.LeftButton)
    assert desk.document.recipe.calibration.inputs == "pictures/"
