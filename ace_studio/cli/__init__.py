"""The command line: the same jobs as the window, over the same stream of events.

With ``--json`` a command prints one JSON document to stdout and nothing else; progress and errors go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from typer import Abort
from typer.exceptions import TyperException

from ace_studio.cli.commands import app
from ace_studio.records.errors import ExitCode


def run_command(words: Sequence[str]) -> int:
    """Do what ``words`` say and return the exit code; never raises for anything a user can cause."""
    import typer.main  # noqa: PLC0415 - only here

    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(words), prog_name="ace-studio", standalone_mode=False)
    except Abort:
        return ExitCode.CANCELLED
    except TyperException as error:
        print(error.format_message(), file=sys.stderr)  # noqa: T201 - stderr is where a wrong word is answered
        print("  remedy: ace-studio --help lists the words and their options", file=sys.stderr)  # noqa: T201
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.CANCELLED
    return int(outcome or ExitCode.DONE)
