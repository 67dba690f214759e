"""Words that are no command, or lack an option."""

import json

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
