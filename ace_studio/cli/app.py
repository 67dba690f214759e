"""The command line application: the options that several commands have, and how a command fails."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ace_studio.cli.console import Console
from ace_studio.cli.follow import JobAnswer
from ace_studio.records.errors import ErrorCode, Problem

app = typer.Typer(
    name="ace-studio",
    help="Trace, compress, lower, measure and verify PyTorch models. Without a command the window opens.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout; logs go to stderr.")]
TrustFlag = Annotated[bool, typer.Option("--trust", help="Run the code of the files that the recipe names.")]
BatchOnlyFlag = Annotated[bool, typer.Option("--batch-only", help="Let only the batch stay free; hold other sizes.")]
NoCacheFlag = Annotated[bool, typer.Option("--no-cache", help="Capture anew, do not use the cache of captures.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input", help="An example tensor, such as x=1x3x32x32 or 'ids=1x16:int64:random 0..999'; repeat it for more."
    ),
]


def report_failure(
    problems: Sequence[Problem], console: Console, *, capture: JobAnswer | None = None, out: Path | None = None
) -> int:
    """Print the problems to stderr, and in the JSON as ``error``; the first one decides the exit code.

    Args:
        problems: At least one.
        console: Where to.
        capture: What the job found out before it failed.
        out: Folder of the run, which gets a ``result.json`` that says why there is no result.
    """
    console.show_problems(problems)
    headline = problems[0]
    document: dict[str, Any] = {
        "format": 1,
        "status": "cancelled" if headline.code is ErrorCode.CANCELLED else "failed",
        "error": msgspec.to_builtins(headline),
        "errors": msgspec.to_builtins(problems),
    }
    if capture is not None and capture.rungs:
        document["capture"] = {"rungs": msgspec.to_builtins(capture.rungs)}
    if out is not None:
        with contextlib.suppress(OSError):  # the folder may be gone by now; the answer below is what counts
            (out / "result.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if console.as_json:
        console.print_json(document)
    return headline.exit_code
