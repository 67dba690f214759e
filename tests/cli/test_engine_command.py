"""``engine``: packs are installed, listed and removed on the command line, and ``doctor`` names them."""

import json
import sys

import pytest

from ace_studio.cli import run_command
from ace_studio.jobs.engine_packs import Pack
from ace_studio.records.hosts import NEEDED
from ace_studio.records.messages import EnvironmentFound, EnvironmentReport, JobFinished
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from tests.jobs.packs import make_pack, pack_named

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_pack_is_installed_listed_and_removed(tmp_path, capsys):
    assert run_command(["engine", "install", str(make_pack(tmp_path))]) == 0
    assert "is installed in" in capsys.readouterr().err
    assert run_command(["engine", "list"]) == 0
    assert pack_named() in capsys.readouterr().out
    assert run_command(["engine", "list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["python"] == sys.executable and [pack["name"] for pack in said["packs"]] == [pack_named()]
    assert run_command(["engine", "remove", pack_named(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == pack_named()
    assert run_command(["engine", "list"]) == 0
    assert "No engine packs are installed." in capsys.readouterr().out


def test_what_cannot_be_installed_or_removed_has_its_exit_code_and_a_remedy(tmp_path, capsys):
    assert run_command(["engine", "install", str(tmp_path / "none.tar.gz")]) == 2
    assert run_command(["engine", "install", str(make_pack(tmp_path, pack_named("9.9.9")))]) == 6
    assert run_command(["engine", "remove", "nothing"]) == 2
    assert capsys.readouterr().err.count("remedy:") == 3


def test_doctor_says_which_python_runs_the_engine_and_which_packs_there_are(tmp_path, capsys, answer_with):
    run_command(["engine", "install", str(make_pack(tmp_path))])
    report = EnvironmentReport(python="3", executable="/p", platform="x", cpu="c", cores=1, memory_bytes=1, versions={})
    answer_with(EnvironmentFound(job="doctor", report=report), JobFinished(job="doctor"))
    assert run_command(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert f"The engine runs in {sys.executable}\n" in shown and pack_named() in shown
    assert run_command(["doctor", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["engine_packs"] == [pack_named()]
    assert printed.err == f"The engine runs in {sys.executable}\n"


def test_doctor_looks_at_the_python_of_the_folder_and_at_a_named_one_before_it(
    tmp_path, capsys, answer_with, monkeypatch
):
    (tmp_path / "project" / "sub").mkdir(parents=True)
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    Settings(UserFolders.of_user().settings).choose_interpreter(str(tmp_path / "project"), str(bare))
    monkeypatch.chdir(tmp_path / "project" / "sub")
    assert run_command(["doctor"]) == 6
    said = capsys.readouterr()
    assert f"The engine runs in {bare}, which was chosen for this folder in the window" in said.out
    assert all(f"'{text}'" in said.err for text in NEEDED.values())
    report = EnvironmentReport(python="3", executable="/p", platform="x", cpu="c", cores=1, memory_bytes=1, versions={})
    answer_with(EnvironmentFound(job="doctor", report=report), JobFinished(job="doctor"))
    assert run_command(["doctor", "--python", sys.executable]) == 0
    assert f"The engine runs in {sys.executable}, which --python names" in capsys.readouterr().out


def test_a_pack_is_made_from_the_network_and_its_progress_is_told(tmp_path, capsys, monkeypatch):
    def make_online(python, say):
        say("Collecting torch")
        return Pack(name=f"made-of-{python}", folder=str(tmp_path))

    monkeypatch.setattr("ace_studio.jobs.online_engine.make_online", make_online)
    assert run_command(["engine", "make", "--python", "python3.12", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["name"] == "made-of-python3.12"
    assert "made-of-python3.12 is installed in" in printed.err
