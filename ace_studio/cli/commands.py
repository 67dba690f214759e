"""The commands that inspect, trace and run a model. Each sends a request, follows its events and shows the answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ace_studio.cli.app import BatchOnlyFlag, InputOption, JsonFlag, NoCacheFlag, TrustFlag, app, report_failure
from ace_studio.cli.console import Console
from ace_studio.cli.follow import follow
from ace_studio.cli.running import read_result, recipe_for, run_recipe, with_capture
from ace_studio.cli.show import show_capture, show_environment, show_file
from ace_studio.cli.show_result import show_result
from ace_studio.records.errors import ExitCode
from ace_studio.records.messages import DoctorRequest, InspectRequest, TraceRequest
from ace_studio.records.places import example_recipe


@app.command(name="open")
def open_window(path: Annotated[Path | None, typer.Argument(help="A model or a recipe.")] = None) -> int:
    """Open the window (handled before the command line is loaded; listed here for --help)."""
    del path
    return ExitCode.USAGE


@app.command(name="inspect")
def inspect_file(path: Path, as_json: JsonFlag = False) -> int:
    """Say what a file is, without running any code in it."""
    console = Console(as_json=as_json)
    answer = follow(InspectRequest(job="inspect", path=str(path.absolute())), console)
    if answer.problems or answer.file is None:
        return report_failure(answer.problems, console)
    return console.answer(answer.file, show_file)


@app.command(name="doctor")
def describe_environment(as_json: JsonFlag = False) -> int:
    """Say what this machine has: versions, devices, targets, and why some are missing."""
    console = Console(as_json=as_json)
    answer = follow(DoctorRequest(job="doctor"), console)
    if answer.problems or answer.environment is None:
        return report_failure(answer.problems, console)
    return console.answer(answer.environment, show_environment)


@app.command(name="trace")
def trace_model(
    path: Annotated[Path, typer.Argument(help="A recipe (.toml), a model, or a name such as timm:resnet18.")],
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    compare_rungs: Annotated[bool, typer.Option("--compare-rungs", help="Try every capture method.")] = False,
    batch_only: BatchOnlyFlag = False,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Capture the graph and say how, with the verdict on every dimension."""
    console = Console(as_json=as_json)
    recipe, folder = recipe_for(path, entry=entry, inputs=inputs)
    recipe = with_capture(recipe, compare_rungs=compare_rungs, batch_only=batch_only, no_cache=no_cache)
    request = TraceRequest(job="trace", recipe=recipe, folder=str(folder), trust_all=trust)
    answer = follow(request, console)
    if answer.problems or answer.captured is None:
        return report_failure(answer.problems, console, capture=answer)
    document = {"format": 1, "status": "ok", "fingerprint": answer.captured.fingerprint}
    document["capture"] = msgspec.to_builtins(answer.captured.capture)
    return console.answer(answer.captured.capture, show_capture, document=document)


@app.command(name="run")
def run_job(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml).")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the result and the artifacts.")],
    batch_only: BatchOnlyFlag = False,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Do everything that a recipe says, and write result.json, a report and the artifacts."""
    recipe, folder = recipe_for(path)
    recipe = with_capture(recipe, batch_only=batch_only, no_cache=no_cache)
    return run_recipe(recipe, folder, out=out, trust=trust, console=Console(as_json=as_json))


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the result and the artifacts.")] = Path(
        "ace-output/demo"
    ),
    as_json: JsonFlag = False,
) -> int:
    """Run the shipped example: capture, compress, measure, compare, report."""
    console = Console(as_json=as_json)
    path = example_recipe()
    recipe, folder = recipe_for(path)
    console.say(f"The shipped example: {path}")
    return run_recipe(recipe, folder, out=out, trust=True, console=console)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a run wrote.")], as_json: JsonFlag = False
) -> int:
    """Show the comparison of a finished run again."""
    return Console(as_json=as_json).answer(read_result(folder), partial(show_result, folder=folder))
