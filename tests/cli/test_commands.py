"""The command line: words to requests, events to answers, problems to exit codes."""

import json

from ace_studio.cli import run_command
from ace_studio.records.messages import FileInspected, FileReport, JobFinished, LogLine
from tests.cli.fake_engine import result


def test_run_prints_one_json_document_and_nothing_else_on_stdout(answer_with, recipe, tmp_path, capsys):
    answer_with(LogLine(text="printed by the model"), JobFinished(result=result()))
    assert run_command(["run", str(recipe), "--out", str(tmp_path / "out"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["chosen"] == 0
    assert "printed by the model" in err


def test_inspect_shows_the_report(answer_with, tmp_path, capsys):
    file = FileReport(path="m.py", kind="python", label="Python source", sha256="ab", size_bytes=3, trust="code")
    answer_with(FileInspected(report=file))
    assert run_command(["inspect", str(tmp_path / "m.py")]) == 0
    assert "Python source" in capsys.readouterr().out
