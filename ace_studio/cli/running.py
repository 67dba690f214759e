"""A run of a recipe from the command line, and the result that a run left in its folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ace_studio.cli.app import report_failure
from ace_studio.cli.console import Console
from ace_studio.cli.follow import follow
from ace_studio.cli.show_result import show_result
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.messages import ModelCaptured, RunRequest
from ace_studio.records.recipes.file import recipe_text
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import Result, ResultStatus, decode_result
from ace_studio.records.safe_file import make_output_folder
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from ace_studio.session.kept.history import History

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
    if console.as_json:
        console.print_json(result)
    else:
        show_result(result, out, console)
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
