"""The dialog that chooses the machine of the engine."""

from __future__ import annotations

import json
import sys

import pytest

from ace_studio.gui.dialogs.engine_host import EngineHostDialog
from ace_studio.jobs.hosts.probe import MARK
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.hosts import NEEDED
from ace_studio.records.messages import DoctorRequest
from ace_studio.records.recipes.recipe import EngineChoice

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ssh of the tests is a shell script")
FOUND = {
    "version": "3.12.1", "executable": "/p", "platform": "x", "machine": "x", "cores": 64, "memory_bytes": 1,
    "cache": "/c", "disk_free_bytes": 10**11, "disk_refusal": "",
    "packages": {name: text.partition("=")[2].partition(",")[0] for name, text in NEEDED.items()},
}  # fmt: skip


@pytest.fixture
def dialog(desk, qtbot) -> EngineHostDialog:
    desk.open_example()
    dialog = EngineHostDialog(desk.session)
    qtbot.addWidget(dialog)
    dialog.show()
    yield dialog
    dialog.reject()


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    def says(script: str) -> None:
        path = tmp_path / "ssh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv(SSH_VARIABLE, str(path))

    return says


def checked(dialog, qtbot) -> str:
    with qtbot.waitSignal(dialog.checking.finished, timeout=10_000):
        dialog.check_button.click()
    qtbot.waitUntil(dialog.check_button.isEnabled)
    return dialog.said.text()


def test_a_host_is_checked_and_put_into_the_recipe(desk, dialog, qtbot, ssh):
    ssh(f"cat > /dev/null\necho '{MARK}{json.dumps(FOUND)}'")
    dialog.host.setText("user@box")
    dialog.python.setText("~/torch/bin/python")
    assert checked(dialog, qtbot).startswith("An engine can run there: Python 3.12.1, torch 2.11, 64 cores")
    dialog.use_button.click()
    assert desk.document.recipe.engine == EngineChoice(host="user@box", python="~/torch/bin/python")
    desk.session.choices.undo()
    assert desk.document.recipe.engine == EngineChoice()


def test_what_is_wrong_there_is_said_with_its_remedy(dialog, qtbot, ssh):
    ssh("echo 'Permission denied (publickey).' >&2; exit 255")
    dialog.host.setText("box")
    said = checked(dialog, qtbot)
    assert "box refused the key" in said and "ssh-copy-id" in said
    ssh(f"cat > /dev/null\necho '{MARK}{json.dumps(FOUND | {'packages': {}})}'")
    said = checked(dialog, qtbot)
    assert "engine host install box" in said and "/p -m pip install" in said


def test_no_name_of_a_host_can_be_used_and_an_empty_one_is_this_machine(desk, dialog):
    dialog.host.setText("-oProxyCommand=x")
    assert (
        not dialog.use_button.isEnabled() and not dialog.check_button.isEnabled() and "user@box" in dialog.said.text()
    )
    desk.session.choices.set_choice("engine", host="box", files=("*.npz",))
    dialog.host.setText("")
    dialog.use_button.click()
    assert desk.document.recipe.engine == EngineChoice()


def test_closing_ends_a_check_that_goes_on(dialog, qtbot, ssh):
    ssh("exec sleep 60")
    dialog.host.setText("box")
    dialog.check_button.click()
    dialog.reject()
    assert dialog.checking.isFinished()


def test_the_action_opens_it(desk):
    desk.open_example()
    desk.do("engine-host")
    (found,) = desk.window.findChildren(EngineHostDialog)
    found.reject()


def test_the_environment_of_another_machine_is_asked_anew_and_the_status_line_names_it(desk):
    desk.open_example()
    desk.session.trust.trust_file()
    desk.session.jobs.request_environment()
    desk.settle()
    desk.engine.by_itself = False
    assert desk.document.environment is not None
    desk.session.choices.set_choice("engine", host="user@box")
    desk.session.jobs.request_environment()
    request = desk.engine.requests[-1]
    assert isinstance(request, DoctorRequest) and request.engine.host == "user@box"
    assert desk.document.environment is None
    desk.settle()
    assert desk.window.status_line._about.text() == "user@box"
