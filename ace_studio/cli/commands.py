"""The commands that inspect, trace and run a model. Each sends a request, follows its events and shows the answer."""

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ace_studio.cli.app import (
    BatchOnlyFlag,
    Console,
    ContainFlag,
    InputOption,
    JsonFlag,
    NoCacheFlag,
    PythonOption,
    ShapesFromOption,
    TrustFlag,
    app,
)
from ace_studio.cli.engine_command import show_packs
from ace_studio.cli.follow import TRACE_JOB, follow, kept_runner, python_of_folder
from ace_studio.cli.running import filled_recipe_for, read_result, recipe_for, repeat_run, run_recipe, with_capture
from ace_studio.cli.show import show_capture, show_environment, show_file
from ace_studio.cli.show_result import show_result
from ace_studio.cli.user_word import may_send
from ace_studio.jobs.engine_packs import find_packs
from ace_studio.jobs.launch import default_interpreter
from ace_studio.records import messages
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.recipe import EngineChoice
from ace_studio.session.choices import with_first_plan


@app.command(name="open")
def open_window(path: Annotated[Path | None, typer.Argument(help="A model or a recipe.")] = None) -> int:
    """Open the window, with a model or a recipe if one is named."""
    del path  # `__main__` opens the window without this module, which only gives --help
    return ExitCode.USAGE


@app.command(name="inspect")
def _inspect(path: Path, as_json: JsonFlag = False) -> int:
    """Say what a file is, without running any code in it."""
    console = Console(as_json=as_json)
    answer = follow(messages.InspectRequest(job="inspect", path=str(path.absolute())), console)
    return console.answer(answer.need(messages.FileInspected).report, show_file)


@app.command(name="doctor")
def describe_environment(
    host: Annotated[str, typer.Option(help="Another machine instead, by ssh: user@name.")] = "",
    python: Annotated[str, typer.Option(metavar="PATH", help="The Python of the engine, here or with --host.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Say what this machine has: versions, devices, targets, and why some are missing."""
    console = Console(as_json=as_json)
    engine = EngineChoice(host=host, python=python) if host else EngineChoice()
    looked_at = "" if host or kept_runner.get() is not None else _told_python(python, console)
    answer = follow(messages.DoctorRequest(job="doctor", engine=engine), console, python=looked_at)
    report = answer.need(messages.EnvironmentFound).report
    names = () if host else tuple(one.name for one in find_packs())
    return console.answer(msgspec.structs.replace(report, engine_packs=names), show_environment)


def _told_python(python: str, console: Console) -> str:
    """The Python that ``doctor`` looks at; says which and why before it is started, since it may be unfit."""
    ways = (
        (python, ", which --python names"),
        (python_of_folder(Path.cwd()), ", which was chosen for this folder in the window"),
        (default_interpreter(), ""),
    )
    chosen, why = next((way, words) for way, words in ways if way)
    if console.as_json:
        console.say(f"The engine runs in {chosen}{why}")
    else:
        show_packs(console, chosen, why)
    return chosen


@app.command(name="trace")
@may_send
def trace_model(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    path: Annotated[Path, typer.Argument(help="A recipe (.toml), a model, or a name such as timm:resnet18.")],
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    compare_rungs: Annotated[bool, typer.Option("--compare-rungs", help="Try every capture method.")] = False,
    batch_only: BatchOnlyFlag = False,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    python: PythonOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Capture the graph and say how, with the verdict on every dimension."""
    console = Console(as_json=as_json)
    recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain, python=python)
    recipe = with_capture(recipe, compare_rungs=compare_rungs, batch_only=batch_only, no_cache=no_cache)
    request = messages.TraceRequest(job=TRACE_JOB, recipe=recipe, folder=str(folder), trust_all=trust)
    found = follow(request, console, contain=contain, python=python).need(messages.ModelCaptured)
    document = {"format": 1, "status": "ok", "fingerprint": found.fingerprint, "capture": found.capture}
    return console.answer(found.capture, show_capture, document=document)


@app.command(name="run")
@may_send
def run_job(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    out: Annotated[Path, typer.Option("--out", help="Folder for the result and the artifacts.")],
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe (.toml), or a model: with what its file has, int8-static if that gives data.",
        ),
    ] = None,
    repeat: Annotated[
        str, typer.Option("--repeat", metavar="RUN", help="Instead: a run of the history, or a folder that one wrote.")
    ] = "",
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    batch_only: BatchOnlyFlag = False,
    shapes_from: ShapesFromOption = None,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    python: PythonOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Do everything that a recipe says, and write result.json, a report and the artifacts."""
    if (path is None) == (not repeat):
        raise AceError.of(ErrorCode.USAGE, "Name a recipe, or a run with --repeat RUN", why="one of both is needed")
    console = Console(as_json=as_json)
    if path is None:
        return repeat_run(repeat, out=out, trust=trust, contain=contain, python=python, console=console)
    recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain, python=python)
    if path.suffix != ".toml":
        recipe = with_first_plan(recipe)
    recipe = with_capture(recipe, batch_only=batch_only, no_cache=no_cache, shapes_from=shapes_from)
    return run_recipe(recipe, folder, out=out, trust=trust, contain=contain, python=python, console=console)


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
    console, result = Console(as_json=as_json), read_result(folder)
    code = console.answer(result, partial(show_result, folder=folder))
    if result.error is not None:
        console.show_problems((result.error,))
    return code
