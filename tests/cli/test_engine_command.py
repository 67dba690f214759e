"""``engine``: packs are installed, listed and removed on the command line, and ``doctor`` names them."""

import io
import json
import sys
from pathlib import Path

import pytest

from ace_studio.cli import run_command
from ace_studio.jobs import signature
from ace_studio.jobs.engine_packs import Pack, find_packs
from ace_studio.records.hosts import NEEDED
from ace_studio.records.messages import EnvironmentFound, EnvironmentReport, JobFinished
from ace_studio.records.safe_file import file_sha256
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.settings import Settings
from tests.jobs.packs import Makers, beyond_the_longest_path, make_pack, pack_named

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def trusted(file: Path) -> list[str]:
    """The words that install a file, whoever made it."""
    return ["engine", "install", str(file), "--trust", file_sha256(file)]


def test_a_pack_is_installed_listed_and_removed(tmp_path, capsys):
    assert run_command(trusted(make_pack(tmp_path))) == 0
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


@pytest.fixture
def makers(tmp_path, monkeypatch):
    made = Makers()
    key = made.write_key(tmp_path / "release-key.pub")
    monkeypatch.setattr(signature, "release_key", lambda: key)
    return made


def asked(monkeypatch, answer: str) -> None:
    """A person at a terminal who types this."""
    terminal = io.StringIO(answer + "\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)


@pytest.mark.parametrize(
    ("words", "is_signed", "exit_code"),
    [
        ([], False, 5),
        (["--yes"], False, 5),
        (["--trust", "0" * 64], False, 5),
        (["--trust", "short"], True, 5),
        ([], True, 5),
        (["--yes"], True, 0),
    ],
)
def test_without_a_terminal_only_a_signature_or_the_hash_installs(
    tmp_path, capsys, makers, words, is_signed, exit_code
):
    file = make_pack(tmp_path)
    if is_signed:
        makers.sign(file)
    assert run_command(["engine", "install", str(file), *words]) == exit_code
    shown = capsys.readouterr().err
    assert file_sha256(file) in shown and ("by nobody" in shown) is not is_signed
    assert len(find_packs()) == (exit_code == 0)


@pytest.mark.parametrize(
    ("answer", "is_signed", "is_installed"),
    [("y", True, True), ("", True, False), ("y", False, False), ("", False, False), ("digits", False, True)],
)
def test_at_a_terminal_an_unsigned_pack_needs_the_digits_of_its_hash(
    tmp_path, makers, monkeypatch, answer, is_signed, is_installed
):
    file = make_pack(tmp_path)
    if is_signed:
        makers.sign(file)
    asked(monkeypatch, file_sha256(file)[-8:] if answer == "digits" else answer)
    assert run_command(["engine", "install", str(file), *([] if is_signed else ["--yes"])]) == (
        0 if is_installed else 5
    )
    assert len(find_packs()) == is_installed


def test_a_name_cannot_forge_a_line_of_the_question(tmp_path, capsys):
    file = make_pack(tmp_path)
    forged = file.rename(tmp_path / "x\nsigned: by the makers of this program\x1b[2J.tar.gz")
    assert run_command(["engine", "install", str(forged)]) == 5
    shown = capsys.readouterr().err
    assert "\nsigned: by nobody" in shown and "\nsigned: by the makers" not in shown.partition("error:")[0]
    assert "\x1b" not in shown


@pytest.mark.parametrize("more", [["--yes"], []])
def test_an_attack_named_like_a_pack_writes_nothing(tmp_path, more, monkeypatch, capsys):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text("alive")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    for up in (4, 5, 6):
        evil = beyond_the_longest_path(pack_named(), up=up, to=".bashrc")
        file = make_pack(tmp_path / "in", more=evil)
        assert run_command(["engine", "install", str(file), *more]) == 2
    assert (home / ".bashrc").read_text() == "alive" and not (home / "data").exists()
    assert "leads out of the folder" in capsys.readouterr().err


def test_what_cannot_be_installed_or_removed_has_its_exit_code_and_a_remedy(tmp_path, capsys):
    assert run_command(["engine", "install", str(tmp_path / "none.tar.gz")]) == 2
    assert run_command(["engine", "install", str(make_pack(tmp_path, pack_named("9.9.9")))]) == 6
    assert run_command(["engine", "remove", "nothing"]) == 2
    assert capsys.readouterr().err.count("remedy:") == 3


def test_doctor_says_which_python_runs_the_engine_and_which_packs_there_are(tmp_path, capsys, answer_with):
    run_command(trusted(make_pack(tmp_path)))
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
