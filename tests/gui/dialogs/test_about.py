"""About: what this is, its version, and what the engine runs on."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from ace_studio.gui.dialogs.about import AboutDialog, about_text
from ace_studio.gui.dialogs.licences import Licence


def test_about_names_the_versions_of_window_and_engine(desk):
    assert "has not reported" in about_text(None)
    desk.traced()
    desk.session.jobs.request_environment()
    assert f"torch {desk.document.environment.versions['torch']}" in about_text(desk.document.environment)


def test_versions_are_copied_for_a_report_and_licences_are_read_when_they_are_looked_at(desk, monkeypatch):
    read = []
    monkeypatch.setattr(Licence, "text", property(lambda self: read.append(self.package.name) or "its words"))
    desk.do("about")
    (dialog,) = desk.window.findChildren(AboutDialog)
    copy = next(one for one in dialog.findChildren(QPushButton) if one.text() == "Copy versions")
    QTest.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text().startswith("ACE Studio ")
    assert dialog.licences.count() == 0
    bar = dialog.tabs.tabBar()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(1).center())
    assert dialog.licences.count() > 20 and dialog.text.toPlainText() == "its words"
    dialog.licences.setCurrentRow(dialog.licences.count() - 1)
    assert "CC BY 4.0" in dialog.text.toPlainText()
