"""The settings dialog, built from the table of settings. Every change takes effect at once."""

from __future__ import annotations

from itertools import groupby

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from ace_studio.gui.dialogs.settings import SettingsDialog
from ace_studio.session.kept.settings import SETTINGS


@pytest.fixture
def dialog(desk) -> SettingsDialog:
    desk.do("settings")
    (dialog,) = desk.window.findChildren(SettingsDialog)
    return dialog


def lines(dialog) -> set[str]:
    return {key for key, editor in dialog.editors.items() if editor.isVisible()}


def test_the_settings_dialog_has_an_editor_per_row_and_changes_hold_at_once(desk, dialog):
    assert set(dialog.editors) == set(SETTINGS)
    assert all(editor.accessibleName() for editor in dialog.editors.values())
    dialog.editors["theme"].setCurrentIndex(SETTINGS["theme"].choices.index("light"))
    assert desk.session.settings.get("theme") == "light"
    dialog.editors["log_lines"].setValue(500)
    assert desk.session.settings.get("log_lines") == 500


def test_rows_of_a_group_stand_together_and_each_is_explained_in_one_line():
    groups = [group for group, _ in groupby(SETTINGS.values(), key=lambda setting: setting.group)]
    assert len(groups) == len(set(groups))
    assert all(0 < len(setting.help) < 110 for setting in SETTINGS.values())


def test_typing_leaves_the_settings_that_contain_the_words_and_marks_them(desk, dialog):
    QTest.keyClicks(dialog.search, "theme desktop")
    assert lines(dialog) == {"theme"}
    _, name, words = dialog._lines["theme"]
    mark = f"background: {desk.window.theme.colours.accent}"
    assert f"{mark}" in name.text() and "desktop</span>" in words.text()
    dialog.search.setText("high-contrast")
    assert lines(dialog) == {"theme"}, "the values of a choice are found too"
    dialog.search.setText("xyzzy")
    assert lines(dialog) == set() and dialog.nothing.isVisible()
    dialog.search.clear()
    assert lines(dialog) == set(SETTINGS) and words.text() == SETTINGS["theme"].help


@pytest.mark.parametrize("key", SETTINGS)
def test_a_changed_value_goes_back_to_the_default_with_one_click(desk, qtbot, key):
    setting = SETTINGS[key]
    other = {"theme": "light", "runs_folder": "/runs", "interpreter": "/python", "reopen_last": True}.get(key, 200)
    desk.session.set_setting("theme", setting.default if key == "theme" else "dark")
    desk.session.set_setting(key, 1.5 if setting.kind is float else other)
    desk.do("settings")
    (dialog,) = desk.window.findChildren(SettingsDialog)
    reset = dialog.resets[key]
    assert reset.isVisible()
    assert all(not button.isVisible() for name, button in dialog.resets.items() if name not in {key, "theme"})
    QTest.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert desk.session.settings.get(key) == setting.default and not reset.isVisible()
    dialog.close()
