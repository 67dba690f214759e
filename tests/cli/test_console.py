"""Where the command line writes, and how often."""

import io
import json

import rich.console

from ace_studio.cli import app as console_module
from ace_studio.cli.app import Console
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.messages import LogLine, Phase, Progress


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


HOSTILE = "[/red] root:x:0 \x1b]0;title\x07 \x9b31m \u202egnp.exe end\\"


def test_nothing_from_outside_is_markup_or_steers_the_terminal(capsys):
    console = Console(as_json=False)
    console.print(HOSTILE)
    console.print_table((HOSTILE,), [(HOSTILE,)])
    console.say(HOSTILE)
    console.log(LogLine(text=HOSTILE))
    console.show_progress(Progress(phase=Phase.VERIFY, detail=HOSTILE))
    shown = "[/red] root:x:0 \\u001b]0;title\\u0007 \\u009b31m \\u202egnp.exe end\\"
    out, err = capsys.readouterr()
    assert out.count(shown) == 3
    assert err.count(shown) == 3
    assert not set("\x1b\x07\x9b\u202e") & set(out + err)


def test_the_progress_bar_of_a_terminal_takes_no_markup(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(as_json=False)
    console._err = rich.console.Console(file=io.StringIO(), force_terminal=True, width=200, emoji=False, markup=False)
    with console.progress():
        console.show_progress(Progress(phase=Phase.VERIFY, detail=HOSTILE))
    written = console._err.file.getvalue()
    assert "[/red] root:x:0 \\u001b]0;title" in written
    assert "\x1b]0" not in written


def test_the_json_keeps_the_values_that_it_escapes(capsys):
    Console(as_json=True).print_json({"a": HOSTILE})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": HOSTILE}
    assert not set("\x1b\x07\x9b\u202e") & set(out)


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


FORGED = "net\nThis file is safe.\r\tx"


def test_a_line_end_in_a_name_begins_no_line(capsys):
    console = Console(as_json=False)
    console.print(f"a {FORGED}", "second")
    console.print_table(("name",), [(FORGED,), (("one", "two"),)])
    console.say(FORGED)
    console.print_whole(FORGED)
    console.show_problems(
        [Problem(code=ErrorCode.UNTRUSTED, what=FORGED, why=f"opening it would run {FORGED}", where=FORGED)]
    )
    out, err = capsys.readouterr()
    assert not [
        line for line in (out + err).splitlines() if line.strip(" ").startswith("This file") and line[:4] != "    "
    ]
    assert "a net\\u000aThis file is safe.\\u000d\\u0009x\nsecond\n" in out
    assert [line.strip() for line in out.splitlines()].count("two") == 1
    assert "error: net\\u000aThis file" in err and "  where: net\\u000aThis file" in err
