"""The dialog that chooses the machine of the engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.gui.dialogs.engine_host import EngineHostDialog
from ace_studio.jobs.hosts.probe import MARK
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.hosts import NEEDED
from ace_studio.records.messages import DoctorRequest
from ace_studio.records.recipes.recipe import EngineChoice
from tests.jobs.hosts.ssh_host import HOST, needs_ssh, ssh_host
from tests.jobs.hosts.wheels import make_wheel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ssh of the tests is a shell script")
FOUND = {
    "version": "3.12.1", "executable": "/p", "platform": "x", "machine": "x", "cores": 64, "memory_bytes": 1,
    "cache": "/c", "disk_free_bytes": 10**11, "disk_refusal": "",
    "packages": {name: text.partition("=")[2].partition(",")[0] for name, text in NEEDED.items()},
}  # fmt: skip


@pytest.fixture
def dialog(desk, opened, qtbot) -> EngineHostDialog:
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
    with qtbot.waitSignal(dialog.work.finished, timeout=20_000):
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
    assert dialog.install_button.isVisible()
    dialog.host.setText("other")
    assert not dialog.install_button.isVisible()


def test_no_name_of_a_host_can_be_used_and_an_empty_one_is_this_machine(desk, dialog):
    dialog.host.setText("-oProxyCommand=x")
    assert not dialog.use_button.isEnabled() and not dialog.check_button.isEnabled()
    assert "user@box" in dialog.said.text()
    desk.session.choices.set_choice("engine", host="box", files=("*.npz",))
    dialog.host.setText("")
    dialog.use_button.click()
    assert desk.document.recipe.engine == EngineChoice()


def test_closing_ends_a_check_that_goes_on(dialog, qtbot, ssh):
    ssh("exec sleep 60")
    dialog.host.setText("box")
    dialog.check_button.click()
    dialog.reject()
    assert dialog.work.isFinished()


@pytest.mark.slow
@needs_ssh
def test_what_is_missing_there_is_installed_and_that_python_is_taken_over(desk, dialog, qtbot, tmp_path, monkeypatch):
    """A real SSH server, a Python without any package, and wheels that pip finds in a folder."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, text in NEEDED.items():
        make_wheel(wheels, name, text.partition("=")[2].partition(",")[0])
    bare = tmp_path / "bare"
    subprocess.run([sys._base_executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with ssh_host(tmp_path / "host") as host:
        monkeypatch.setenv(SSH_VARIABLE, host.command)
        settings = host.home / ".config" / "pip" / "pip.conf"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
        dialog.host.setText(HOST)
        dialog.python.setText(str(bare / "bin" / "python"))
        assert "lacks what an engine needs" in checked(dialog, qtbot)
        with qtbot.waitSignal(dialog.work.finished, timeout=120_000):
            dialog.install_button.click()
        qtbot.waitUntil(dialog.check_button.isEnabled)
    assert "Successfully installed" in dialog.log.toPlainText() or "already satisfied" in dialog.log.toPlainText()
    assert dialog.said.text().startswith("An engine can run there") and not dialog.install_button.isVisible()
    made = str(host.home / ".local" / "share" / "ace-studio" / "engine-env" / "bin" / "python")
    dialog.use_button.click()
    assert desk.document.recipe.engine == EngineChoice(host=HOST, python=made)


def test_an_installation_is_shown_and_can_be_cancelled(dialog, qtbot, ssh, tmp_path):
    poor = json.dumps(FOUND | {"packages": {}})
    ssh(f"case \"$*\" in *exec*) echo Collecting torch; exec sleep 60;; esac\ncat > /dev/null\necho '{MARK}{poor}'")
    dialog.host.setText("box")
    checked(dialog, qtbot)
    dialog.install_button.click()
    qtbot.waitUntil(lambda: "Collecting torch" in dialog.log.toPlainText(), timeout=20_000)
    assert dialog.stop_button.isVisible() and not dialog.use_button.isEnabled() and dialog.host.isReadOnly()
    with qtbot.waitSignal(dialog.work.finished, timeout=20_000):
        dialog.stop_button.click()
    qtbot.waitUntil(dialog.install_button.isVisible)
    assert "was cancelled" in dialog.said.text() and not dialog.stop_button.isVisible()


def link_to(python: str, path: Path) -> str:
    """A Python of another name; environments have such ones."""
    path.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_python_of_this_machine_is_checked_before_it_is_used_for_the_project(desk, dialog, qtbot, tmp_path):
    settings, folder = desk.session.settings, desk.document.folder
    dialog.python.setText(link_to(f"{sys.executable} -S", tmp_path / "poor"))
    with qtbot.waitSignal(dialog.work.finished, timeout=20_000):
        dialog.use_button.click()
    qtbot.waitUntil(dialog.check_button.isEnabled)
    assert "lacks what an engine needs" in dialog.said.text() and "-m pip install" in dialog.said.text()
    assert dialog.isVisible() and not settings.project_interpreter(folder) and not dialog.install_button.isVisible()
    dialog.python.setText(good := link_to(sys.executable, tmp_path / "good"))
    with qtbot.waitSignal(dialog.finished, timeout=20_000):
        dialog.use_button.click()
    assert settings.project_interpreter(folder) == good and settings.get("interpreter") == ""
    assert desk.document.recipe.engine == EngineChoice()
    again = EngineHostDialog(desk.session)
    qtbot.addWidget(again)
    assert again.python.text() == good
    again.host.setText("box")
    assert again.python.text() == ""
    again.host.clear()
    again.python.clear()
    again.use_button.click()  # the choice is taken back; nothing is left to check
    assert not settings.project_interpreter(folder)


def test_without_a_project_the_python_is_that_of_all(desk, qtbot, tmp_path):
    dialog = EngineHostDialog(desk.session)
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.host.isVisible()
    dialog.python.setText(good := link_to(sys.executable, tmp_path / "good"))
    with qtbot.waitSignal(dialog.finished, timeout=20_000):
        dialog.use_button.click()
    assert desk.session.settings.get("interpreter") == good


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
