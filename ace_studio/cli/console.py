"""Where the command line writes: answers to stdout, progress and problems to stderr."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO, TypeVar

import msgspec
import rich.box
import rich.console
import rich.table
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from ace_studio.records.errors import ExitCode, Problem
from ace_studio.records.messages import LogLine, Progress

FoundT = TypeVar("FoundT")
FILE_WIDTH = 190
PULSE_LINE_S = 30.0
"""Seconds between progress lines that repeat what is known already, where there is no terminal."""


class Console:
    """Prints plain text. With ``as_json`` stdout gets one JSON document and nothing else."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = rich.console.Console(file=sys.stdout, highlight=False, emoji=False, width=_table_width(sys.stdout))
        self._err = rich.console.Console(file=sys.stderr, highlight=False, emoji=False)
        self._bar: ProgressBar | None = None
        self._task: Any = None
        self._last_phase = ""
        self._last_pulse_s = time.monotonic()

    def print(self, text: str) -> None:
        """Print a line of the answer."""
        self._out.print(escape(text))

    def print_table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, bold_row: int | None = None
    ) -> None:
        """Print a table of the answer; nothing if it has no rows. None is an empty cell."""
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for index, row in enumerate(rows):
            cells = ("" if cell is None else escape(str(cell)) for cell in row)
            table.add_row(*cells, style="bold" if index == bold_row else None)
        if table.row_count:
            self._out.print(table)

    def print_json(self, document: object) -> None:
        """Print the whole answer, a record or plain values, as one JSON document."""
        sys.stdout.write(json.dumps(msgspec.to_builtins(document), indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def answer(self, found: FoundT, show: Callable[[FoundT, Console], None], *, document: object = None) -> int:
        """Print what was found: as JSON, in the form of ``document`` if that is given, or as ``show`` puts it."""
        if self.as_json:
            self.print_json(found if document is None else document)
        else:
            show(found, self)
        return ExitCode.DONE

    def say(self, text: str) -> None:
        """Print a remark to stderr."""
        self._err.print(escape(text), soft_wrap=True)

    def show_problems(self, problems: Sequence[Problem]) -> None:
        """Print every problem as what, why, remedy and where to stderr."""
        for problem in problems:
            self.say(f"error: {problem.as_text()}")

    def log(self, line: LogLine) -> None:
        """Print a line that the user's code printed to stderr."""
        self._err.print(f"[dim]{escape(line.text)}[/dim]", soft_wrap=True)

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show a progress bar on a terminal, and a line per phase elsewhere."""
        if not self._err.is_terminal:
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        with ProgressBar(*columns, console=self._err, transient=True) as bar:
            self._bar, self._task = bar, bar.add_task("Starting", total=None)
            yield
            self._bar = None

    def show_progress(self, event: Progress) -> None:
        """Show what the job is doing."""
        text = f"{event.phase}: {event.detail}" if event.detail else str(event.phase)
        if self._bar is not None:
            total = None if event.fraction is None else 1.0
            self._bar.update(self._task, description=escape(text), total=total, completed=event.fraction or 0.0)
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
