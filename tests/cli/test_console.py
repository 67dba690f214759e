"""Where the command line writes, and how often."""

import json

from ace_studio.cli import console as console_module
from ace_studio.cli.console import Console
from ace_studio.records.messages import Phase, Progress


def test_a_log_says_at_most_twice_a_minute_that_a_trace_goes_on(monkeypatch, capsys):
    now_s = [0.0]
    monkeypatch.setattr(console_module.time, "monotonic", lambda: now_s[0])
    console = Console(as_json=False)
    for second in range(1, 101):
        now_s[0] = float(second)
        console.show_progress(Progress(phase=Phase.CAPTURE, detail=f"export: {second} s", is_pulse=True))
    console.show_progress(Progress(phase=Phase.VERIFY))
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in lines[:-1]] == ["30 s", "60 s", "90 s"]
    assert lines[-1] == str(Phase.VERIFY)


def test_text_in_brackets_is_printed_as_it_is_and_no_markup(capsys):
    Console(as_json=False).print("[bold] x[0] :smile:")
    Console(as_json=False).print_table(("a",), [("[red]y[/red]",)])
    out = capsys.readouterr().out
    assert "[bold] x[0] :smile:" in out
    assert "[red]y[/red]" in out


def test_a_table_without_rows_is_not_printed(capsys):
    Console(as_json=False).print_table(("a", "b"), [])
    assert capsys.readouterr().out == ""


def test_remarks_go_to_stderr_so_that_the_json_is_alone_on_stdout(capsys):
    shown = Console(as_json=True)
    shown.say("working")
    shown.print_json({"a": (1, None)})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": [1, None]}
    assert err == "working\n"
