"""How a command fails: on stderr, in the JSON and in the exit code."""

import json

from ace_studio import __version__
from ace_studio.cli import run_command
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import JobFailed


def test_a_problem_is_said_on_stderr_and_is_the_error_of_the_json(answer_with, recipe, tmp_path, capsys):
    problem = Problem(code=ErrorCode.USER_CODE, what="forward raised", why="w", remedy="r", where="model.py:3")
    answer_with(JobFailed(problems=(problem,)))
    run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["where"] == "model.py:3"
    assert "why: w" in err
    assert "remedy: r" in err
    assert json.loads((tmp_path / "out" / "result.json").read_text())["status"] == "failed"


def test_the_version_is_printed_without_an_engine(capsys):
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out == f"ACE Studio {__version__}\n"
