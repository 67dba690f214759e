"""``completion``: the script with which a shell completes commands and options."""

import sys
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script

from ace_studio import COMPLETE_VARIABLE
from ace_studio.cli.app import app
from ace_studio.records.errors import ExitCode


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> int:
    """Print the script with which a shell completes commands and options."""
    script = get_completion_script(prog_name="ace-studio", complete_var=COMPLETE_VARIABLE, shell=shell.value)
    sys.stdout.write(f"{script}\n")
    return ExitCode.DONE
