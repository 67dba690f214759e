"""The settings dialog, built from the table of settings. Every change takes effect at once."""

from __future__ import annotations

from ace_studio.gui.dialogs.settings import SettingsDialog
from ace_studio.session.kept.settings import SETTINGS


def test_the_settings_dialog_has_an_editor_per_row_and_changes_hold_at_once(desk, qtbot):
    dialog = SettingsDialog(desk.session)
    qtbot.addWidget(dialog)
    assert set(dialog.editors) == set(SETTINGS)
    assert all(editor.accessibleName() for editor in dialog.editors.values())
    dialog.editors["theme"].setCurrentIndex(SETTINGS["theme"].choices.index("light"))
    assert desk.session.settings.get("theme") == "light"
    dialog.editors["log_lines"].setValue(500)
    assert desk.session.settings.get("log_lines") == 500
