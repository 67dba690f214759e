"""``ace-studio mcp``: which folders its tools may use; and it is told when the SDK is missing."""

import importlib.util

import anyio

from ace_studio.cli import run_command
from ace_studio.cli.agents import server
from ace_studio.session.kept.folders import UserFolders


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run_command(["mcp"]) == 6
    assert "pip install 'ace-studio[mcp]'" in capsys.readouterr().err


def served(monkeypatch, *words):
    """The roots of a server that is started so."""
    found = []
    monkeypatch.setattr(server, "serve_agent", lambda runner: found.append(runner.roots))
    monkeypatch.setattr(anyio, "run", lambda serve, runner: serve(runner))
    code = run_command(["mcp", *map(str, words)])
    return found[0] if found else code


def test_tools_work_in_the_folder_that_the_server_was_started_in(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    roots = served(monkeypatch)
    assert roots.read == roots.write == (tmp_path.resolve(),)
    assert roots.own == UserFolders.of_user().own


def test_a_whole_disk_is_open_to_no_tool_unless_it_is_named(monkeypatch):
    monkeypatch.chdir("/")
    assert (served(monkeypatch).write, served(monkeypatch).read) == ((), ())


def test_the_user_names_other_folders(monkeypatch, tmp_path, capsys):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    words = ("--write", tmp_path / "a", "--write", "b", "--read", tmp_path / "c")
    roots = served(monkeypatch, *words)
    assert roots.write == (tmp_path.resolve() / "a", tmp_path.resolve() / "b")
    assert roots.read == (tmp_path.resolve() / "c",)
    assert served(monkeypatch, "--read", tmp_path / "gone") == 2
    assert "There is no folder" in capsys.readouterr().err
