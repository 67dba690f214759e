"""``engine host`` on the command line."""

import json
import sys

import pytest

from ace_studio.cli import host_command, run_command
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.records.hosts import NEEDED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the ssh of the tests is a shell script")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An ssh that runs the command on this machine."""
    path = tmp_path / "ssh"
    path.write_text('#!/bin/sh\nfor last in "$@"; do :; done\nexec sh -c "$last"\n')
    path.chmod(0o755)
    monkeypatch.setenv(SSH_VARIABLE, str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_host_is_checked(here, capsys):
    assert run_command(["engine", "host", "check", "user@box", "--python", sys.executable]) == 0
    shown = capsys.readouterr().out
    assert f"at {sys.executable}" in shown and "torch" in shown and "An engine can run there" in shown
    assert run_command(["engine", "host", "check", "user@box", "--python", sys.executable, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["format"] == 1 and said["host"] == "user@box" and said["missing"] == [] and said["problems"] == []


def test_a_host_without_the_python_ends_with_its_exit_code(here, capsys):
    assert run_command(["engine", "host", "check", "box", "--python", "/no/python", "--json"]) == 6
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == "not-installed" and "remedy:" in said.err


def test_nothing_is_installed_where_nothing_is_missing(here, capsys):
    assert run_command(["engine", "host", "install", "box", "--python", sys.executable]) == 0
    said = capsys.readouterr().err
    assert "Nothing is missing on box" in said and f'python = "{sys.executable}"' in said


def test_what_is_missing_is_installed_and_the_host_is_checked_again(here, capsys, monkeypatch):
    installed = []

    def install(host, python, requirements, say):
        installed.append((host, requirements))
        say("pip speaks")
        return sys.executable

    monkeypatch.setattr(host_command, "install_there", install)
    poor = here / "poor"
    poor.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    poor.chmod(0o755)
    assert run_command(["engine", "host", "install", "box", "--python", str(poor), "--json"]) == 0
    said = capsys.readouterr()
    assert installed == [("box", tuple(NEEDED.values()))] and "pip speaks" in said.err
    assert json.loads(said.out)["python"] == sys.executable and json.loads(said.out)["missing"] == []
