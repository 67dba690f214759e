"""Words that are no command, or lack an option."""

import json
import subprocess
import sys
from pathlib import Path

from ace_studio.cli import run_command


def test_a_broken_recipe_is_a_usage_error_that_names_every_line(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text('format = 1\n[model]\nsorce = "m.py"\n[plan]\ndefault = "int9"\n', encoding="utf-8")
    assert run_command(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert "bad.toml:3" in err
    assert "bad.toml:5" in err
    assert "Traceback" not in err


def test_a_missing_option_and_an_unknown_command_are_usage_errors(capsys):
    assert run_command(["run", "recipe.toml"]) == 2
    assert run_command(["fly"]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_wrong_word_is_answered_in_json_too(capsys):
    assert run_command(["frobnicate", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"


def test_a_full_disk_behind_stdout_is_told_without_a_traceback():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ace_studio", "trust", "--json"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 6
    assert "The disk is full" in done.stderr and "Traceback" not in done.stderr


def test_a_current_folder_that_was_deleted_is_named(tmp_path):
    gone = tmp_path / "gone"
    code = (
        f"import os, sys; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r});"
        "from ace_studio.cli import run_command; sys.exit(run_command(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "The current folder was deleted" in done.stderr and "cd ~" in done.stderr
