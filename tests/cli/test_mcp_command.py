"""``ace-studio mcp``: it is told when the SDK is missing."""

import importlib.util

from ace_studio.cli import run_command


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run_command(["mcp"]) == 6
    assert "pip install 'ace-studio[mcp]'" in capsys.readouterr().err
