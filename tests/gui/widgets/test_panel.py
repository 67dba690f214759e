"""The base class of panels: a widget that shows parts of the document and turns gestures into calls of the session."""

from PySide6.QtGui import QDesktopServices, QGuiApplication


def test_a_desktop_without_a_program_for_folders_is_said_and_the_path_is_copied(desk, monkeypatch):
    desk.ran()
    asked = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: asked.append(url.toLocalFile()))
    folder = desk.panel("results").folder_action
    folder.setEnabled(True)  # the recording has no folder
    folder.trigger()
    desk.settle()
    assert asked == [desk.document.output]
    assert "Nothing on this desktop opens it" in desk.window.bars.problem.accessibleName()
    assert QGuiApplication.clipboard().text() == desk.document.output
