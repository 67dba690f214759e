"""The settings dialog, built from the table of settings. Every change takes effect at once."""

import sys
from itertools import groupby

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from ace_studio.gui.dialogs import settings as settings_dialog
from ace_studio.gui.dialogs.settings import PackList, SettingsDialog
from ace_studio.jobs.engine_packs import find_packs
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.session.kept.settings import SETTINGS
from tests.jobs.packs import install_anyway, make_pack, pack_named


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


def test_what_is_set_elsewhere_is_shown(desk, dialog):
    desk.do("theme-light")
    assert dialog.editors["theme"].currentData() == "light" and dialog.resets["theme"].isVisible()
    desk.do("theme-system")
    assert dialog.editors["theme"].currentData() == "system" and not dialog.resets["theme"].isVisible()


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
    other = {
        "theme": "light",
        "language": "Deutsch",
        "runs_folder": "/runs",
        "hosts": "user@box",
        "interpreter": "/python",
        "reopen_last": True,
        "contain": "always",
    }.get(key, 200)
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


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


def texts(widget) -> str:
    return "\n".join(one.text() for one in widget.findChildren(QLabel) if one.isVisible())


def test_a_pack_is_listed_and_removed_unless_it_is_in_use(desk, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    install_anyway(make_pack(tmp_path))
    dialog = SettingsDialog(desk.session, desk.window.theme)
    desk.bot.addWidget(dialog)
    dialog.show()
    dialog.search.setText("engine packs")
    packs = dialog.findChild(PackList)
    assert packs.isVisible() and pack_named() in texts(packs)

    def refuse(name: str) -> None:
        raise AceError.of(ErrorCode.USAGE, f"{name} is in use", why="process 7 runs in it")

    with monkeypatch.context() as patched:
        patched.setattr(settings_dialog, "remove", refuse)
        click_remove(desk, packs)
    assert "process 7 runs in it" in texts(packs) and len(find_packs()) == 1
    click_remove(desk, packs)
    assert find_packs() == () and "No engine pack is installed." in texts(packs)


def click_remove(desk, packs) -> None:
    desk.settle()
    button = next(one for one in packs.findChildren(QPushButton) if one.isVisible())
    desk.bot.mouseClick(button, Qt.MouseButton.LeftButton)
    desk.settle()


def test_return_in_a_field_opens_and_closes_nothing(dialog, monkeypatch):
    opened = []
    monkeypatch.setattr(settings_dialog.QFileDialog, "getOpenFileName", lambda *args: opened.append(args) or ("", ""))
    for field in (dialog.search, dialog.editors["runs_folder"]):
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert not opened and dialog.isVisible()
    QTest.keyClick(dialog.search, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
