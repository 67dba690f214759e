"""The commands: each turns its words into a request, follows the events, and shows the answer."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ace_studio.cli.follow import JobAnswer, follow
from ace_studio.cli.show import Console, show_capture, show_environment, show_file, show_problems, show_result
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.messages import DoctorRequest, InspectRequest, RunRequest, TraceRequest
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.file import read_recipe, recipe_text
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import InputsChoice, ModelChoice, Recipe
from ace_studio.records.results import Result, ResultStatus, decode_result
from ace_studio.records.safe_file import make_output_folder
from ace_studio.records.tensors import TensorSpec
from ace_studio.session.kept.history import History

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
NoCacheFlag = Annotated[bool, typer.Option("--no-cache", help="Capture anew, whatever was captured before.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", help="An example tensor, such as x=1x3x32x32 or ids=1x16:int64; repeat it for more."),
]


@app.command(name="open")
def open_window(path: Annotated[Path | None, typer.Argument(help="A model or a recipe.")] = None) -> int:
    """Open the window (handled before the command line is loaded; listed here for --help)."""
    del path
    return ExitCode.USAGE


@app.command()
def inspect(path: Path, as_json: JsonFlag = False) -> int:
    """Say what a file is, without running any code in it."""
    console = Console(as_json=as_json)
    answer = follow(InspectRequest(job="inspect", path=str(path.absolute())), console)
    if answer.problems:
        return fail(answer.problems, console)
    assert answer.file is not None
    if as_json:
        console.print_json(_to_json(answer.file))
    else:
        show_file(answer.file, console)
    return ExitCode.DONE


@app.command()
def doctor(as_json: JsonFlag = False) -> int:
    """Say what this machine has: versions, devices, targets, and why some are missing."""
    console = Console(as_json=as_json)
    answer = follow(DoctorRequest(job="doctor"), console)
    if answer.problems:
        return fail(answer.problems, console)
    assert answer.environment is not None
    if as_json:
        console.print_json(_to_json(answer.environment))
    else:
        show_environment(answer.environment, console)
    return ExitCode.DONE


@app.command()
def trace(
    path: Annotated[Path, typer.Argument(help="A recipe (.toml), a model, or a name such as timm:resnet18.")],
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    compare_rungs: Annotated[bool, typer.Option("--compare-rungs", help="Try every way to capture.")] = False,
    batch_only: BatchOnlyFlag = False,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Capture the graph and say how, with the verdict on every dimension."""
    console = Console(as_json=as_json)
    try:
        recipe, folder = recipe_for(path, entry=entry, inputs=inputs or [])
    except AceError as error:
        return fail(error.problems, console)
    recipe = _with_capture(recipe, compare_rungs=compare_rungs, batch_only=batch_only, no_cache=no_cache)
    request = TraceRequest(job="trace", recipe=recipe, folder=str(folder), trust_all=trust)
    answer = follow(request, console)
    if answer.problems or answer.captured is None:
        return fail(answer.problems, console, capture=answer)
    if as_json:
        document = {"format": 1, "status": "ok", "fingerprint": answer.captured.fingerprint}
        console.print_json(document | {"capture": _to_json(answer.captured.capture)})
    else:
        show_capture(answer.captured.capture, console)
    return ExitCode.DONE


@app.command()
def run(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml).")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the result and the artifacts.")],
    batch_only: BatchOnlyFlag = False,
    no_cache: NoCacheFlag = False,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Do everything that a recipe says, and write result.json, a report and the artifacts."""
    console = Console(as_json=as_json)
    try:
        recipe, folder = recipe_for(path, entry="", inputs=[])
    except AceError as error:
        return fail(error.problems, console, out=out)
    recipe = _with_capture(recipe, batch_only=batch_only, no_cache=no_cache)
    return run_recipe(recipe, folder, out=out, trust=trust, console=console)


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
    try:
        recipe = read_recipe(path)
    except AceError as error:
        return fail(error.problems, console)
    console.say(f"The shipped example: {path}")
    return run_recipe(recipe, path.parent, out=out, trust=True, console=console)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a run wrote.")], as_json: JsonFlag = False
) -> int:
    """Show the comparison of a finished run again."""
    console = Console(as_json=as_json)
    try:
        result = read_result(folder)
    except AceError as error:
        return fail(error.problems, console)
    if as_json:
        console.print_json(_to_json(result))
    else:
        show_result(result, folder, console)
    return ExitCode.DONE


@app.command()
def history(as_json: JsonFlag = False) -> int:
    """List the runs that were made on this machine, newest first."""
    console = Console(as_json=as_json)
    entries = History.open_default().list()
    if as_json:
        console.print_json(_to_json(entries))
        return ExitCode.DONE
    for one in entries:
        console.print(f"{one.date}  {one.title}  {one.summary}  {one.output}")
    if not entries:
        console.print("No runs yet.")
    return ExitCode.DONE


# --- shared by the commands ---


def run_recipe(recipe: Recipe, folder: Path, *, out: Path, trust: bool, console: Console) -> int:
    """Run a recipe, remember it, show its result, and give the exit code."""
    try:
        make_output_folder(out)
    except AceError as error:
        return fail(error.problems, console)
    request = RunRequest(job="run", recipe=recipe, folder=str(folder), trust_all=trust, output=str(out.absolute()))
    answer = follow(request, console)
    if answer.problems or answer.result is None:
        return fail(answer.problems, console, capture=answer, out=out)
    result = answer.result
    _remember(result, recipe, folder, out=out, console=console)
    if console.as_json:
        console.print_json(_to_json(result))
    else:
        show_result(result, out, console)
    return _exit_code_of(result, console)


def _remember(result: Result, recipe: Recipe, folder: Path, *, out: Path, console: Console) -> None:
    """Append the run to the history; a history that cannot be written is a remark, never a failed run."""
    title = f"{folder.name}/{recipe.model.source}"
    try:
        text, output = recipe_text(recipe), str(out.absolute())
        History.open_default().add(result, recipe_toml=text, title=title, output=output, folder=str(folder.absolute()))
    except AceError as error:
        console.say(f"warning: {error.problem.as_text()}")


def _exit_code_of(result: Result, console: Console) -> int:
    if result.error is not None:
        show_problems((result.error,), console)
    match result.status:
        case ResultStatus.OK:
            return ExitCode.DONE
        case ResultStatus.GOAL_NOT_MET:
            return ExitCode.GOAL_NOT_MET
        case ResultStatus.FAILED:
            return ExitCode.JOB_FAILED


def fail(
    problems: tuple[Problem, ...], console: Console, *, capture: JobAnswer | None = None, out: Path | None = None
) -> int:
    """Say the problems on stderr, and in the JSON as ``error``; the headline decides the exit code."""
    show_problems(problems, console)
    headline = problems[0]
    document: dict[str, Any] = {
        "format": 1,
        "status": "cancelled" if headline.code is ErrorCode.CANCELLED else "failed",
        "error": _to_json(headline),
        "errors": _to_json(problems),
    }
    if capture is not None and capture.rungs:
        document["capture"] = {"rungs": _to_json(capture.rungs)}
    if out is not None and capture is not None:
        with contextlib.suppress(OSError):  # the folder was there when the job began; the answer below is what counts
            (out / "result.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if console.as_json:
        console.print_json(document)
    return headline.exit_code


def _to_json(record: object) -> Any:
    return msgspec.to_builtins(record)


def recipe_for(path: Path, *, entry: str, inputs: list[str]) -> tuple[Recipe, Path]:
    """The recipe in a ``.toml``, or one made for a model file with what the options say."""
    if path.suffix == ".toml":
        recipe = read_recipe(path)
    else:
        if not path.exists() and named_source(path) is None:
            raise AceError.of(ErrorCode.NOT_FOUND, f"There is no file {path}", remedy="Check the path.")
        recipe = Recipe(model=ModelChoice(source=path.name))
    if entry:
        recipe = msgspec.structs.replace(recipe, model=msgspec.structs.replace(recipe.model, entry=entry))
    if inputs:
        rows = _rows_of(inputs)
        recipe = msgspec.structs.replace(recipe, inputs=InputsChoice(rows=rows, dims=recipe.inputs.dims))
    return recipe, path.absolute().parent


def _with_capture(
    recipe: Recipe, *, compare_rungs: bool = False, batch_only: bool = False, no_cache: bool = False
) -> Recipe:
    """The recipe with what the options say of the capture; an option that is absent leaves it as it is."""
    asked = {
        "compare_rungs": compare_rungs or None,
        "batch_only": batch_only or None,
        "cache": False if no_cache else None,
    }
    changes = {name: value for name, value in asked.items() if value is not None}
    return msgspec.structs.replace(recipe, capture=msgspec.structs.replace(recipe.capture, **changes))


def _rows_of(words: list[str]) -> tuple[dict[str, TensorSpec], ...]:
    """Rows from ``x=1x3x32x32`` words: the n-th word of one name belongs to the n-th row."""
    columns: dict[str, list[TensorSpec]] = {}
    for word in words:
        name, spec = _parse_input(word)
        columns.setdefault(name, []).append(spec)
    count = max(len(column) for column in columns.values())
    return tuple({name: column[min(i, len(column) - 1)] for name, column in columns.items()} for i in range(count))


def _parse_input(word: str) -> tuple[str, TensorSpec]:
    name, equals, description = word.partition("=")
    shape_text, _, dtype = description.partition(":")
    try:
        shape = tuple(int(size) for size in shape_text.split("x")) if shape_text not in {"", "scalar"} else ()
    except ValueError:
        shape = (-1,)
    if not equals or not name or any(size < 0 for size in shape):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{word}' is not an input",
            why="an input is NAME=SHAPE with sizes joined by x, and a type after a colon where it is not float32",
            remedy="Write --input x=1x3x32x32 or --input ids=1x16:int64.",
        )
    return name, TensorSpec(shape=shape, dtype=dtype or "float32")


def read_result(folder: Path) -> Result:
    """What a finished run wrote. Raises: AceError(NOT_FOUND or BAD_FILE), or the problems that the run ended with."""
    path = folder / "result.json"
    try:
        content = path.read_bytes()
        if stored := _stored_problems(content):
            raise AceError(*stored)
        return decode_result(content)
    except FileNotFoundError as error:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"There is no result in {folder}",
            why="result.json is missing",
            remedy="Name the folder that was given to `ace-studio run --out`.",
        ) from error
    except (msgspec.DecodeError, OSError) as error:
        raise AceError.of(
            ErrorCode.BAD_FILE, f"{path} is not a finished result", why=str(error), remedy="Run the recipe again."
        ) from error


class _FailedRun(msgspec.Struct, frozen=True):
    """What a run that ended before its result leaves in ``result.json``."""

    errors: tuple[Problem, ...] = ()


def _stored_problems(content: bytes) -> tuple[Problem, ...]:
    """The problems that ended the run, if its file holds nothing else."""
    try:
        return msgspec.json.decode(content, type=_FailedRun).errors
    except msgspec.DecodeError:
        return ()
