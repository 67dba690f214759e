"""The command line: the same jobs as the window, over the same stream of events.

With ``--json`` a command prints one JSON document to stdout and nothing else; progress and errors go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ace_studio.cli.commands import app
from ace_studio.records.errors import ExitCode


def run_command(words: Sequence[str]) -> int:
    """Do what ``words`` say and return the exit code; never raises for anything a user can cause."""
    import typer.main  # noqa: PLC0415 - only here

    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(words), prog_name="ace-studio", standalone_mode=False)
    except click.exceptions.Abort:
        return ExitCode.CANCELLED
    except click.ClickException as error:
        error.show(file=sys.stderr)
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.CANCELLED
    return int(outcome or ExitCode.DONE)
