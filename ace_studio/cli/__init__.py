"""The command line: the same jobs as the window, over the same stream of events.

With ``--json`` a command prints one JSON document to stdout and nothing else; progress and errors go to stderr.
"""

from __future__ import annotations

from collections.abc import Sequence

from typer import Abort
from typer.exceptions import TyperException

from ace_studio.cli import advise_command as _advise_command  # noqa: F401 - registers its command
from ace_studio.cli import catch_command as _catch_command  # noqa: F401 - registers its command
from ace_studio.cli import fix_command as _fix_command  # noqa: F401 - registers its command
from ace_studio.cli import prune_command as _prune_command  # noqa: F401 - registers its command
from ace_studio.cli import sensitivity_command as _sensitivity_command  # noqa: F401 - registers its command
from ace_studio.cli.commands import app, fail
from ace_studio.cli.show import Console
from ace_studio.records.errors import ErrorCode, ExitCode, Problem


def run_command(words: Sequence[str]) -> int:
    """Do what ``words`` say and return the exit code; never raises for anything a user can cause."""
    import typer.main  # noqa: PLC0415 - only here

    command = typer.main.get_command(app)
    try:
        outcome = command.main(args=list(words), prog_name="ace-studio", standalone_mode=False)
    except Abort:
        return ExitCode.CANCELLED
    except TyperException as error:
        problem = Problem(
            code=ErrorCode.USAGE,
            what=error.format_message(),
            remedy="ace-studio --help lists the words and their options",
        )
        return fail((problem,), Console(as_json="--json" in words))
    except KeyboardInterrupt:
        return ExitCode.CANCELLED
    return int(outcome or ExitCode.DONE)
