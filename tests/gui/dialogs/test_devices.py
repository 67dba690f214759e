"""The dialog with the list of devices."""

import sys

import pytest

from ace_studio.gui.dialogs.devices import DevicesDialog, check_words
from ace_studio.records.devices import DeviceCheck
from tests.gui.gestures import LEFT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the Python of the tests is a shell script")


@pytest.fixture
def dialog(desk, qtbot) -> DevicesDialog:
    dialog = DevicesDialog(desk.session)
    qtbot.addWidget(dialog)
    dialog.show()
    yield dialog
    dialog.reject()


def add(dialog, desk, *words: str) -> None:
    for field, word in zip((dialog.name, dialog.place, dialog.python), words, strict=False):
        field.setText(word)
    desk.bot.mouseClick(dialog.add_button, LEFT)


def names(dialog) -> list[str]:
    return [dialog.model.index(at, 0).data() for at in range(dialog.model.rowCount())]


def test_three_fields_add_a_device_which_is_selected_and_can_be_removed(desk, dialog):
    assert names(dialog) == ["here"] and not dialog.add_button.isEnabled()
    add(dialog, desk, "box", "user@box", "~/p")
    assert names(dialog) == ["here", "box"] and dialog.chosen.python == "~/p" and "was added" in dialog.said.text()
    assert [one.name for one in desk.session.devices.all()] == ["here", "box"] and dialog.name.text() == ""
    desk.bot.mouseClick(dialog.remove_button, LEFT)
    assert names(dialog) == ["here"] and "its figures stay" in dialog.said.text()
    dialog.table.selectRow(0)
    assert not dialog.remove_button.isEnabled() and dialog.check_button.isEnabled()


def test_words_that_are_no_device_stay_in_the_fields_and_say_what_is_wrong(desk, dialog):
    add(dialog, desk, "box", "-oProxyCommand=x")
    assert "is not the address of a device" in dialog.said.text() and dialog.name.text() == "box"
    add(dialog, desk, "here", "user@box")
    assert "There is a device 'here' already" in dialog.said.text()


def test_a_check_says_what_a_device_has(desk, dialog, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    add(dialog, desk, "bare", "here", str(python))
    with desk.bot.waitSignal(dialog.checking.finished, timeout=10_000):
        desk.bot.mouseClick(dialog.check_button, LEFT)
    desk.bot.waitUntil(dialog.check_button.isEnabled)
    assert "Measures artifacts of: nothing" in dialog.said.text() and "onnxruntime is missing" in dialog.said.text()


def test_a_check_that_fails_says_why(desk, dialog, tmp_path):
    add(dialog, desk, "gone", "here", str(tmp_path / "gone"))
    with desk.bot.waitSignal(dialog.checking.finished, timeout=10_000):
        desk.bot.mouseClick(dialog.check_button, LEFT)
    desk.bot.waitUntil(dialog.check_button.isEnabled)
    assert "cannot be started" in dialog.said.text()


def test_the_menu_of_the_engine_shows_it(desk):
    desk.do("devices")
    (shown,) = desk.window.findChildren(DevicesDialog)
    assert shown.isVisible()
    shown.reject()


def test_words_of_a_check():
    found = DeviceCheck(
        name="d", machine="m", version="3.12", runtimes={"onnxruntime": "1"}, missing={"openvino": "pip"}
    )
    assert check_words(found) == "m, 3.12. Measures artifacts of: onnxruntime.\nopenvino is missing: pip"
