"""The command line application: the options that several commands have, where it writes, and how a command fails.

Answers go to stdout, progress and problems to stderr. What is printed comes from models, files and exceptions. None of
it is markup, and none may steer the terminal or pass for a line of ours: all of it passes `visible` or `one_line`, here
and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar

import msgspec
import rich.box
import rich.console
import rich.table
import typer.main
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from ace_studio import __version__
from ace_studio.records.errors import ErrorCode, ExitCode, Problem, one_line, visible
from ace_studio.records.messages import LogLine, Progress
from ace_studio.records.recipes.recipe import ShapesFrom
from ace_studio.records.results import RESULT_NAME, CaptureAttempt, Warning
from ace_studio.records.safe_file import write_atomically

app = typer.Typer(
    name="ace-studio",
    help="Trace, compress, lower, measure and verify PyTorch models. Without a command the window opens.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@cache
def whole_command() -> Any:
    """The command with all others in it, made once, because that takes a tenth of a second."""
    return typer.main.get_command(app)


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout; logs go to stderr.")]
TrustFlag = Annotated[bool, typer.Option("--trust", help="Run the code of the files that the recipe names.")]
ContainFlag = Annotated[
    bool | None,
    typer.Option(
        "--contain/--no-contain",
        help="Refuse this code the network, and writes outside of the output folder. Unsaid: fixes, strangers' files.",
    ),
]
BatchOnlyFlag = Annotated[bool, typer.Option("--batch-only", help="Let only the batch stay free; hold other sizes.")]
ShapesFromOption = Annotated[
    ShapesFrom | None,
    typer.Option("--shapes-from", help="data: also the sizes of calibration and evaluation are free."),
]
NoCacheFlag = Annotated[bool, typer.Option("--no-cache", help="Capture anew, do not use the cache of captures.")]
PythonOption = Annotated[
    str, typer.Option("--python", metavar="PATH", help="The Python of this machine that runs the engine.")
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input", help="An example tensor, such as x=1x3x32x32 or 'ids=1x16:int64:random 0..999'; repeat it for more."
    ),
]


def _say_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"ACE Studio {__version__}")
        raise typer.Exit


@app.callback()
def _take_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version  # its callback ends the process before any command


def report_failure(
    problems: Sequence[Problem],
    console: Console,
    *,
    rungs: Sequence[CaptureAttempt] = (),
    out: Path | None = None,
    **figures: Any,
) -> int:
    """Print the problems to stderr, and in the JSON as ``error``; the first one decides the exit code.

    Args:
        problems: Why there is no answer.
        console: Where to.
        rungs: How the job tried to capture the model before it failed.
        out: Folder of the run, which gets a ``result.json`` that says why there is no result.
        figures: What the run wrote before it ended, which is kept beside the problems.
    """
    console.show_problems(problems)
    headline = problems[0]
    document: dict[str, Any] = {
        **figures,
        "format": 1,
        "status": "cancelled" if headline.code is ErrorCode.CANCELLED else "failed",
        "error": msgspec.to_builtins(headline),
        "errors": msgspec.to_builtins(problems),
    }
    if rungs and not figures:
        document["capture"] = {"rungs": msgspec.to_builtins(rungs)}
    if out is not None:
        with contextlib.suppress(OSError):  # the folder may be gone by now; the answer below is what counts
            write_atomically(out / RESULT_NAME, f"{json.dumps(document, indent=2)}\n".encode())
    if figures and out is not None:
        console.say(f"What was measured before is kept: ace-studio report {shlex.quote(str(out))}")
    if console.as_json:
        console.print_json(document)
    return headline.exit_code


FoundT = TypeVar("FoundT")
FILE_WIDTH = 190
PULSE_LINE_S = 30.0
"""Seconds between progress lines that repeat what is known already, where there is no terminal."""


def progress_text(event: Progress) -> str:
    """What a job is doing, on one line."""
    return f"{event.phase}: {event.detail}" if event.detail else str(event.phase)


class Console:
    """Prints plain text. With ``as_json`` stdout gets one JSON document and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        plain: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
        self._out = rich.console.Console(file=sys.stdout, width=_table_width(sys.stdout), **plain)
        self._err = rich.console.Console(file=sys.stderr, **plain)
        self._bar: ProgressBar | None = None
        self._task: Any = None
        self._warned: set[Warning] = set()
        self._last_phase = ""
        self._last_pulse_s = time.monotonic()

    def print(self, *lines: str) -> None:
        """Print lines of the answer."""
        self._out.print(*map(one_line, lines), sep="\n")

    def print_whole(self, text: str) -> None:
        """Print a line of the answer that people copy: it is never broken into several."""
        self._out.print(one_line(text), soft_wrap=True)

    def print_table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, bold_row: int | None = None
    ) -> None:
        """Print a table of the answer; nothing if it has no rows. None is an empty cell, a tuple has several lines."""
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            table.add_column(Text(one_line(column)), overflow="fold")
        for index, row in enumerate(rows):
            lines = (cell if isinstance(cell, tuple) else () if cell is None else (cell,) for cell in row)
            cells = (Text("\n".join(map(one_line, one))) for one in lines)
            table.add_row(*cells, style="bold" if index == bold_row else None)
        if table.row_count:
            self._out.print(table)

    def print_json(self, document: object) -> None:
        """Print the whole answer, a record or plain values, as one JSON document."""
        is_unicode = str(sys.stdout.encoding).lower().startswith("utf")
        text = json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=not is_unicode)
        sys.stdout.write(visible(text) + "\n")
        sys.stdout.flush()

    def answer(self, found: FoundT, show: Callable[[FoundT, Console], None], *, document: object = None) -> int:
        """Print what was found: as JSON, in the form of ``document`` if that is given, or as ``show`` puts it."""
        if self.as_json:
            self.print_json(found if document is None else document)
        else:
            show(found, self)
        return ExitCode.DONE

    def say(self, *lines: str) -> None:
        """Print a remark to stderr."""
        self._err.print(*map(one_line, lines), sep="\n", soft_wrap=True)

    def warn(self, warning: Warning) -> None:
        """Print a warning to stderr, once."""
        if warning not in self._warned:
            self._warned.add(warning)
            self.say(f"warning: {warning.what}" + (f" ({warning.where})" if warning.where else ""))

    def show_problems(self, problems: Sequence[Problem], *, word: str = "error") -> None:
        """Print every problem as what, why, remedy and where to stderr."""
        for problem in problems:
            self.say(*f"{word}: {problem.as_text()}".split("\n"))

    def log(self, line: LogLine) -> None:
        """Print a line that the user's code printed to stderr."""
        self._err.print(visible(line.text), style="dim", soft_wrap=True)

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show a progress bar on a terminal, and a line per phase elsewhere."""
        if not self._err.is_terminal:
            yield
            return
        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), text, BarColumn(bar_width=24), TimeElapsedColumn())
        with ProgressBar(*columns, console=self._err, transient=True) as bar:
            self._bar, self._task = bar, bar.add_task("Starting", total=None)
            yield
            self._bar = None

    def show_progress(self, event: Progress) -> None:
        """Show what the job is doing."""
        text = progress_text(event)
        if self._bar is not None:
            total = None if event.fraction is None else 1.0
            self._bar.update(self._task, description=one_line(text), total=total, completed=event.fraction or 0.0)
        elif event.fraction is None and text != self._last_phase and self._is_due(event):
            self._last_phase = text
            self.say(text)

    def _is_due(self, event: Progress) -> bool:
        """Whether to write the event to a log: pulses come once a second, and one in half a minute is enough."""
        now_s = time.monotonic()
        if event.is_pulse and now_s - self._last_pulse_s < PULSE_LINE_S:
            return False
        self._last_pulse_s = now_s
        return True


def _table_width(stream: TextIO) -> int | None:
    """Columns for tables: the terminal's own; where the output goes to a file, enough for every table."""
    return None if stream.isatty() else FILE_WIDTH
