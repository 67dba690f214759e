"""``history`` and ``trust``: past runs are tagged, and trust is withdrawn."""

import io
import json
import sys

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import FileInspected, FileReport, FileToTrust, JobFailed
from ace_studio.records.results import Result, ResultStatus
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore
from tests.cli.fake_engine import FakeExecutor


@pytest.fixture
def user(tmp_path, monkeypatch):
    """The folders of a user who has nothing yet."""
    folders = UserFolders.inside(tmp_path / "user")
    monkeypatch.setattr(UserFolders, "of_user", classmethod(lambda cls: folders))
    return folders


def test_a_run_is_tagged_by_its_number_and_loses_its_tags_again(user, capsys):
    result = Result(status=ResultStatus.OK, fingerprint="f", environment={})
    run_id = History(user.history).add(result, recipe_toml="", title="net.py")
    assert run_command(["history", "--tag", str(run_id), "fast, int8"]) == 0
    assert "[fast, int8]" in capsys.readouterr().out
    assert run_command(["history", "--json", "--tag", str(run_id), ""]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tags"] == []


def test_a_run_is_named_by_its_number(user, capsys):
    result = Result(status=ResultStatus.OK, fingerprint="f", environment={})
    run_id = History(user.history).add(result, recipe_toml="", title="net.py")
    assert run_command(["history", "--name", str(run_id), "the good one"]) == 0
    assert "net.py  the good one  ok" in capsys.readouterr().out
    assert run_command(["history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "the good one"


def test_a_list_that_is_cut_says_so(user, capsys, monkeypatch):
    result = Result(status=ResultStatus.OK, fingerprint="f", environment={})
    History(user.history).add(result, recipe_toml="", title="net.py")
    run_command(["history"])
    assert "Only the newest" not in capsys.readouterr().out
    monkeypatch.setattr("ace_studio.cli.kept_commands.MOST_LISTED", 1)
    run_command(["history"])
    assert "Only the newest 1 are listed." in capsys.readouterr().out


def test_a_run_that_is_not_there_cannot_be_tagged(user, capsys):
    assert run_command(["history", "--json", "--tag", "7", "x"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["what"] == "There is no run 7 in the history"


@pytest.mark.parametrize("given", ["net.py", "ab12", "below/../net.py", "link.py"])
def test_trust_is_withdrawn_by_path_or_by_hash(user, tmp_path, capsys, given, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "below").mkdir()
    (tmp_path / "link.py").symlink_to("net.py")
    path = str(tmp_path / "net.py")
    store = TrustStore(user.trust)
    store.trust(path, "ab12")
    store.trust(str(tmp_path / "other.py"), "cd34")
    assert run_command(["trust", "--list"]) == 0
    assert path in capsys.readouterr().out
    assert run_command(["trust", "--revoke", given, "--json"]) == 0
    assert [file["sha256"] for file in json.loads(capsys.readouterr().out)] == ["cd34"]
    assert not TrustStore(user.trust).is_trusted("ab12")


def test_a_file_that_is_not_trusted_cannot_be_revoked(user, capsys):
    assert run_command(["trust", "--revoke", "net.py"]) == 2
    assert "is not a trusted file" in capsys.readouterr().err
    assert run_command(["trust"]) == 0
    assert "No trusted files." in capsys.readouterr().out


INSPECTED = FileInspected(
    report=FileReport(
        path="/net.py", kind="python", label="", sha256="ab12", size_bytes=1, trust="code",
        would_run=("the file",),
        files=(
            FileToTrust(path="/net.py", sha256="ab12", would_run=("the file",)),
            FileToTrust(path="/parts.py", sha256="cd34", would_run=("an import",)),
        ),
    )
)  # fmt: skip
REFUSED = JobFailed(
    problems=(
        Problem(code=ErrorCode.UNTRUSTED, what="", why="would run it", where="/net.py", details="sha256:ab12"),
        Problem(code=ErrorCode.UNTRUSTED, what="", why="read it", where="/x.npz", details="sha256:ef56"),
    )
)


@pytest.fixture
def terminal(monkeypatch):
    """Somebody who answers at a terminal."""

    def answer(text):
        keyboard = io.StringIO(f"{text}\n")
        keyboard.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", keyboard)

    return answer


def test_a_person_who_has_seen_what_would_run_trusts_a_file_and_what_it_imports(user, answer_with, terminal, capsys):
    answer_with(INSPECTED)
    terminal("y")
    assert run_command(["trust", "--add", "/net.py"]) == 0
    assert "/parts.py\n  opening it would run an import\n  sha256:cd34" in capsys.readouterr().err
    assert TrustStore(user.trust).hashes == ("ab12", "cd34")


def test_of_a_recipe_all_is_trusted_that_the_engine_refuses(user, answer_with, terminal, recipe):
    answer_with(REFUSED)
    terminal("y")
    assert run_command(["trust", "--add", str(recipe)]) == 0
    assert TrustStore(user.trust).hashes == ("ab12", "ef56")
    assert FakeExecutor.requests[0].trust_all is False


def test_what_is_trusted_already_is_not_asked_for(user, answer_with, capsys):
    answer_with(INSPECTED)
    store = TrustStore(user.trust)
    store.trust("/net.py", "ab12")
    store.trust("/parts.py", "cd34")
    assert run_command(["trust", "--add", "/net.py"]) == 0
    assert "all of it is trusted" in capsys.readouterr().err


def test_the_answer_no_trusts_nothing(user, answer_with, terminal):
    answer_with(INSPECTED)
    terminal("n")
    assert run_command(["trust", "--add", "/net.py"]) == 5
    assert TrustStore(user.trust).hashes == ()


def test_without_a_terminal_nothing_is_trusted(user, answer_with, monkeypatch, capsys):
    answer_with(INSPECTED)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert run_command(["trust", "--add", "/net.py"]) == 5
    assert "by a person at a terminal" in capsys.readouterr().err
    assert TrustStore(user.trust).hashes == ()


def test_a_recipe_that_cannot_be_read_is_told(user, answer_with, recipe, capsys):
    answer_with(JobFailed(problems=(Problem(code=ErrorCode.NOT_FOUND, what="There is no file net.py"),)))
    assert run_command(["trust", "--add", str(recipe)]) == 2
    assert "There is no file net.py" in capsys.readouterr().err


def test_no_name_of_a_file_forges_a_line_of_the_question(user, answer_with, terminal, capsys):
    name = "/net.py\n  opening it would run nothing\n  sha256:00\x1b[2K\u202e"
    forged = replace(
        INSPECTED.report,
        files=(FileToTrust(path=name, sha256="ab12", would_run=(f"imports of {name}",)),),
    )
    answer_with(FileInspected(report=forged))
    terminal("n")
    assert run_command(["trust", "--add", name]) == 5
    lines = capsys.readouterr().err.splitlines()
    assert not [line for line in lines if line.strip() in ("opening it would run nothing", "sha256:00")]
    assert "  opening it would run imports of /net.py\\u000a" in "\n".join(lines)
    assert "\x1b" not in "".join(lines) and "\u202e" not in "".join(lines)
