"""The command line: the same jobs as the window, over the same stream of events.

With ``--json`` a command prints one JSON document to stdout and nothing else; progress and errors go to stderr.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer.main
from typer import Abort
from typer.exceptions import TyperException

from ace_studio.cli.app import app, report_failure
from ace_studio.cli.console import Console
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem

for _module in (
    "commands", "kept_commands", "advise_command", "catch_command", "fix_command", "prune_command",
    "sensitivity_command",
):  # fmt: skip
    importlib.import_module(f"{__name__}.{_module}")  # registers its commands, in the order of --help


def run_command(words: Sequence[str]) -> int:
    """Run the command and return the exit code; never raises for anything a user can cause."""
    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(words), prog_name="ace-studio", standalone_mode=False)
    except AceError as error:
        return report_failure(error.problems, Console(as_json="--json" in words))
    except TyperException as error:
        problem = Problem(
            code=ErrorCode.USAGE,
            what=error.format_message(),
            remedy="ace-studio --help lists the commands and their options",
        )
        return report_failure((problem,), Console(as_json="--json" in words))
    except (Abort, KeyboardInterrupt):
        return ExitCode.CANCELLED
    return int(outcome or ExitCode.DONE)
