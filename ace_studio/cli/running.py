"""The recipe that a command works on, its run, and the result that a run left in its folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ace_studio.cli.app import report_failure
from ace_studio.cli.console import Console
from ace_studio.cli.follow import follow
from ace_studio.cli.show_result import show_result
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.messages import ModelCaptured, RunRequest
from ace_studio.records.recipes.file import read_recipe, recipe_text
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import InputsChoice, ModelChoice, Recipe
from ace_studio.records.results import Result, ResultStatus, decode_result
from ace_studio.records.safe_file import make_output_folder
from ace_studio.records.tensors import TensorSpec, read_values
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from ace_studio.session.kept.history import History


def recipe_for(path: Path, *, entry: str = "", inputs: list[str] | None = None) -> tuple[Recipe, Path]:
    """The recipe in a ``.toml``, or one for a model file, and the folder that its paths are relative to.

    Raises: AceError if there is no such file, the recipe is invalid or an input is malformed.
    """
    if path.suffix == ".toml":
        recipe = read_recipe(path)
    else:
        if not path.exists() and named_source(path) is None:
            raise AceError.of(ErrorCode.NOT_FOUND, f"There is no file {path}", remedy="Check the path.")
        recipe = Recipe(model=ModelChoice(source=path.name))
    if entry:
        recipe = replace(recipe, model=replace(recipe.model, entry=entry))
    if inputs:
        recipe = replace(recipe, inputs=InputsChoice(rows=rows_of(inputs), dims=recipe.inputs.dims))
    return recipe, path.absolute().parent


def with_capture(
    recipe: Recipe, *, compare_rungs: bool = False, batch_only: bool = False, no_cache: bool = False
) -> Recipe:
    """The recipe with the capture options that were given; an option that is absent changes nothing."""
    capture = replace(
        recipe.capture,
        compare_rungs=recipe.capture.compare_rungs or compare_rungs,
        batch_only=recipe.capture.batch_only or batch_only,
        cache=recipe.capture.cache and not no_cache,
    )
    return replace(recipe, capture=capture)


def rows_of(words: list[str]) -> tuple[dict[str, TensorSpec], ...]:
    """Rows from ``x=1x3x32x32`` words: the n-th word of a name belongs to the n-th row."""
    columns: dict[str, list[TensorSpec]] = {}
    for word in words:
        name, spec = _parse_input(word)
        columns.setdefault(name, []).append(spec)
    count = max(len(column) for column in columns.values())
    return tuple({name: column[min(i, len(column) - 1)] for name, column in columns.items()} for i in range(count))


def _parse_input(word: str) -> tuple[str, TensorSpec]:
    why = "an input is NAME=SHAPE with sizes joined by x, then :TYPE if it is not float32, then :VALUES if not random"
    name, equals, description = word.partition("=")
    shape_text, _, rest = description.partition(":")
    dtype, _, values = rest.partition(":")
    try:
        if values:
            read_values(values)
        shape = tuple(int(size) for size in shape_text.split("x")) if shape_text not in {"", "scalar"} else ()
    except ValueError as error:
        shape = (-1,)
        why = str(error) if values else why
    if not equals or not name or any(size < 0 for size in shape):
        raise AceError.of(
            ErrorCode.USAGE,
            f"'{word}' is not an input",
            why=why,
            remedy="Write --input x=1x3x32x32, --input ids=1x16:int64 or --input 'ids=1x16:int64:random 0..999'.",
        )
    return name, TensorSpec(shape=shape, dtype=dtype or "float32", values=values or "random")


_EXIT_CODES = {
    ResultStatus.OK: ExitCode.DONE,
    ResultStatus.GOAL_NOT_MET: ExitCode.GOAL_NOT_MET,
    ResultStatus.FAILED: ExitCode.JOB_FAILED,
}


def run_recipe(recipe: Recipe, folder: Path, *, out: Path, trust: bool, console: Console) -> int:
    """Run a recipe, add it to the history, show its result, and return the exit code.

    Raises: AceError(USAGE) if the output folder cannot be made.
    """
    make_output_folder(out)
    request = RunRequest(job="run", recipe=recipe, folder=str(folder), trust_all=trust, output=str(out.absolute()))
    answer = follow(request, console)
    if answer.problems or answer.result is None:
        return report_failure(answer.problems, console, capture=answer, out=out)
    result = answer.result
    _remember(result, recipe, folder, out=out, console=console)
    _keep_graph(answer.captured, result)
    console.answer(result, partial(show_result, folder=out))
    if result.error is not None:
        console.show_problems((result.error,))
    return _EXIT_CODES[result.status]


def _remember(result: Result, recipe: Recipe, folder: Path, *, out: Path, console: Console) -> None:
    """Append the run to the history. If the history cannot be written, that is a warning, never a failed run."""
    title = f"{folder.name}/{recipe.model.source}"
    try:
        text, output = recipe_text(recipe), str(out.absolute())
        History.open_default().add(result, recipe_toml=text, title=title, output=output, folder=str(folder.absolute()))
    except AceError as error:
        console.say(f"warning: {error.problem.as_text()}")


def _keep_graph(captured: ModelCaptured | None, result: Result) -> None:
    """Keep the graph for the window, which shows it when the run is opened from the history."""
    if captured is not None:
        kept = KeptGraph(captured.graph, captured.sources)
        writing = KeptGraphs(UserFolders.of_user().graphs).keep(result.fingerprint, kept)
        if writing is not None:
            writing.join()


def read_result(folder: Path) -> Result:
    """Read the result of a finished run.

    Raises: AceError(NOT_FOUND or BAD_FILE), or the problems that ended the run.
    """
    path = folder / "result.json"
    try:
        content = path.read_bytes()
        if problems := _stored_problems(content):
            raise AceError(*problems)
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
    """The ``result.json`` of a run that ended before its result."""

    errors: tuple[Problem, ...] = ()


def _stored_problems(content: bytes) -> tuple[Problem, ...]:
    """The problems that ended the run; empty if the file holds a result."""
    try:
        return msgspec.json.decode(content, type=_FailedRun).errors
    except msgspec.DecodeError:
        return ()
