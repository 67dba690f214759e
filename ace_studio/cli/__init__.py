"""The command line: the same jobs as the window, over the same stream of events.

With ``--json`` a command prints one JSON document to stdout and nothing else; progress and errors go to stderr.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from typer import Abort
from typer.completion import completion_init
from typer.exceptions import TyperException

from ace_studio import COMPLETE_VARIABLE
from ace_studio.cli.app import Console, report_failure, whole_command
from ace_studio.cli.follow import JobEndedError
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.system_faults import system_problem

for _module in (
    "commands", "plan_command", "finished_commands", "kept_commands", "engine_command", "host_command",
    "devices_command", "advise_command", "catch_command", "fix_command", "preview_commands",
    "sweep_command", "recipes_command", "mcp_command", "completion_command",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_module}")  # registers its commands, in the order of --help


def run_command(words: Sequence[str]) -> int:
    """Run the command and return the exit code; never raises for anything a user can cause."""
    if COMPLETE_VARIABLE in os.environ:
        completion_init()
    try:
        _escape_what_the_encoding_lacks()
        _check_folder()
        outcome = whole_command().main(
            args=list(words), prog_name="ace-studio", complete_var=COMPLETE_VARIABLE, standalone_mode=False
        )
    except AceError as error:
        rungs = error.rungs if isinstance(error, JobEndedError) else ()
        return report_failure(error.problems, Console(as_json="--json" in words), rungs=rungs)
    except TyperException as error:
        problem = Problem(
            code=ErrorCode.USAGE,
            what=error.format_message(),
            remedy="ace-studio --help lists the commands and their options",
        )
        return report_failure((problem,), Console(as_json="--json" in words))
    except (Abort, KeyboardInterrupt):
        return ExitCode.CANCELLED
    except (OSError, RuntimeError) as error:
        if (fault := system_problem(error)) is None:
            raise
        if isinstance(error, OSError) and error.filename:  # a file was refused, not the output
            return report_failure((fault,), Console(as_json="--json" in words))
        return _cannot_print(fault)
    except SystemExit:
        if COMPLETE_VARIABLE in os.environ:
            raise
        return _cannot_print(_READER_ENDED)
    return int(outcome or ExitCode.DONE)


_READER_ENDED = Problem(
    code=ErrorCode.SYSTEM,
    what="The program that reads stdout ended",
    remedy="What was to be saved was saved; print into a file, or read to the end",
)
"""Rich and click answer a closed pipe with SystemExit."""


def _escape_what_the_encoding_lacks() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _cannot_print(fault: Problem) -> int:
    """Say what the machine refused. What still waits to be printed is dropped: it would fail again at the exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        Console(as_json=False).show_problems((fault,))
    return ExitCode.JOB_FAILED


def _check_folder() -> None:
    """Raise AceError(NOT_FOUND) if the current folder was deleted: torch does not load there."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        why, remedy = "relative paths mean nothing there, and the engine cannot start", "Change to another folder: cd ~"
        raise AceError.of(ErrorCode.NOT_FOUND, "The current folder was deleted", why=why, remedy=remedy) from error
