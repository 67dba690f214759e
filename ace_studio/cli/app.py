"""The command line application: the options that several commands have, and how a command fails."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer.main

from ace_studio import __version__
from ace_studio.cli.console import Console
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.recipes.recipe import ShapesFrom
from ace_studio.records.results import RESULT_NAME, CaptureAttempt
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
