"""The code panel: the recipe as Python and as a command line, kept up to date."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton

from ace_studio.records.recipes.plan import Precision


def test_code_and_command_follow_the_choices_and_can_be_copied(desk):
    desk.traced()
    panel = desk.panel("code")
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "bf16" in panel.python.toPlainText()
    assert "ace-studio run" in panel.command.toPlainText()
    desk.bot.mouseClick(panel.python.parentWidget().findChild(QPushButton), Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text().strip() == panel.python.toPlainText().strip()
