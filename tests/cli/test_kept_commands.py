"""``history`` and ``trust``: past runs are tagged, and trust is withdrawn."""

from __future__ import annotations

import json

import pytest

from ace_studio.cli import run_command
from ace_studio.records.results import Result, ResultStatus
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore


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


def test_a_run_that_is_not_there_cannot_be_tagged(user, capsys):
    assert run_command(["history", "--json", "--tag", "7", "x"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["what"] == "There is no run 7 in the history"


@pytest.mark.parametrize("by_path", [True, False])
def test_trust_is_withdrawn_by_path_or_by_hash(user, tmp_path, capsys, by_path):
    path = str(tmp_path / "net.py")
    store = TrustStore(user.trust)
    store.trust(path, "ab12")
    store.trust(str(tmp_path / "other.py"), "cd34")
    assert run_command(["trust", "--list"]) == 0
    assert path in capsys.readouterr().out
    assert run_command(["trust", "--revoke", path if by_path else "ab12", "--json"]) == 0
    assert [file["sha256"] for file in json.loads(capsys.readouterr().out)] == ["cd34"]
    assert not TrustStore(user.trust).is_trusted("ab12")


def test_a_file_that_is_not_trusted_cannot_be_revoked(user, capsys):
    assert run_command(["trust", "--revoke", "net.py"]) == 2
    assert "is not a trusted file" in capsys.readouterr().err
    assert run_command(["trust"]) == 0
    assert "No trusted files." in capsys.readouterr().out
