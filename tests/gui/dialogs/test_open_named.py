"""The dialog that opens a model of an installed package by its name."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from ace_studio.gui.dialogs.open_named import OpenNamedDialog


@pytest.fixture
def dialog(desk) -> OpenNamedDialog:
    desk.do("open-named")
    (dialog,) = desk.window.findChildren(OpenNamedDialog)
    return dialog


def test_a_name_that_is_typed_opens_with_return(desk, dialog):
    QTest.keyClicks(dialog.name, "timm:resnet18")
    assert dialog.said.text() == "" and dialog.open_button.isEnabled()
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.recipe.model.source == "timm:resnet18"


def test_what_is_no_name_cannot_be_opened_and_says_how_names_begin(desk, dialog):
    QTest.keyClicks(dialog.name, "resnet18")
    assert not dialog.open_button.isEnabled() and "timm: or torchvision:" in dialog.said.text()
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    assert dialog.isVisible() and desk.document.recipe.model.source == ""


def test_esc_opens_nothing(desk, dialog):
    QTest.keyClicks(dialog.name, "timm:resnet18")
    QTest.keyClick(dialog.name, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.window.findChildren(OpenNamedDialog) == [] and desk.document.recipe.model.source == ""


def test_return_on_cancel_opens_nothing(desk, dialog):
    QTest.keyClicks(dialog.name, "timm:resnet18")
    cancel = next(each for each in dialog.findChildren(QPushButton) if each is not dialog.open_button)
    cancel.setFocus()
    QTest.keyClick(cancel, Qt.Key.Key_Return)
    desk.settle()
    assert desk.window.findChildren(OpenNamedDialog) == [] and desk.document.recipe.model.source == ""


def test_no_generic_dialog_is_used_but_the_desktop_s_file_dialog(root):
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(root, "ace_studio/gui").rglob("*.py"))
    for generic in ("QMessageBox", "QInputDialog", "QErrorMessage", "QProgressDialog", "standardIcon", "fromTheme"):
        assert generic not in texts
