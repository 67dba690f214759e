"""The dialog that catches inputs: which script to run, and which of its modules to record."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from ace_studio.gui.dialogs.catch import CatchDialog
from ace_studio.records.messages import CatchRequest, InputsCaught, ModuleCalls


@pytest.fixture
def dialog(desk, trusted, qtbot) -> CatchDialog:
    desk.engine.by_itself = False
    dialog = CatchDialog(desk.session)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_the_action_opens_it(desk):
    desk.open_example()
    desk.do("catch")
    found = desk.window.findChildren(CatchDialog)
    assert len(found) == 1
    found[0].accept()


def test_a_script_and_its_words_become_a_request(desk, dialog):
    dialog.script.setText("train.py")
    dialog.arguments.setText("--name 'two words'")
    dialog.module.setText("stem")
    dialog.calls.setValue(3)
    dialog.start.click()
    request = desk.engine.requests[-1]
    assert isinstance(request, CatchRequest)
    assert request.script.endswith("digits/train.py")
    assert request.arguments == ("--name", "two words")
    assert (request.module, request.calls) == ("stem", 3)
    desk.settle()
    assert not dialog.start.isEnabled(), "one script at a time"


@pytest.mark.parametrize(("script", "arguments", "words"), [("", "", "script first"), ("a.py", "'", "cannot be read")])
def test_what_cannot_be_run_is_said_beside_the_button(desk, dialog, script, arguments, words):
    before = len(desk.engine.requests)
    dialog.script.setText(script)
    dialog.arguments.setText(arguments)
    dialog.start.click()
    assert words in dialog.said.text()
    assert len(desk.engine.requests) == before


def test_the_modules_that_were_called_can_be_chosen_for_the_next_time(desk, dialog):
    dialog.script.setText("train.py")
    dialog.start.click()
    modules = (
        ModuleCalls(path="", kind="Net", calls=3, inputs=("x float32 1x4",)),
        ModuleCalls(path="stem.0", kind="Conv2d", calls=3),
    )
    job = desk.engine.requests[-1].job
    desk.session.apply(InputsCaught(job=job, path="/caught/inputs.json", module="Net", seen=3, kept=2, modules=modules))
    desk.settle()
    assert dialog.said.text() == "Kept 2 of 3 calls of Net."
    assert dialog.modules.item(0, 3).text() == "x float32 1x4"
    dialog.modules.selectRow(1)
    assert dialog.module.text() == "stem.0"
    dialog.modules.selectRow(0)
    assert dialog.module.text() == ""


def test_a_closed_dialog_follows_nothing_any_more(desk, dialog):
    dialog.accept()
    desk.session.apply(InputsCaught(job="late", path="", module="Net"))
    assert dialog.modules.rowCount() == 0


def test_tab_leaves_the_table_of_modules(desk, dialog):
    modules = tuple(ModuleCalls(path=path, kind="Net", calls=3, inputs=()) for path in ("", "stem"))
    dialog.script.setText("train.py")
    dialog.start.click()
    job = desk.engine.requests[-1].job
    desk.session.apply(InputsCaught(job=job, path="inputs.json", module="Net", modules=modules))
    desk.settle()
    assert dialog.modules.rowCount() == 2
    dialog.activateWindow()
    dialog.modules.setFocus()
    desk.bot.waitUntil(dialog.modules.hasFocus)
    dialog.modules.setCurrentCell(0, 0)
    desk.bot.keyClick(dialog.modules, Qt.Key.Key_Tab)
    assert dialog.focusWidget() is not dialog.modules
    assert dialog.module.text() == ""


def test_return_in_the_field_of_the_script_runs_it(desk, dialog, monkeypatch):
    monkeypatch.setattr(CatchDialog, "_browse", lambda _: pytest.fail("a file dialog opens"))
    dialog.script.setText("train.py")
    QTest.keyClick(dialog.script, Qt.Key.Key_Return)
    assert isinstance(desk.engine.requests[-1], CatchRequest)
