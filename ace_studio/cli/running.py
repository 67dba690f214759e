"""The recipe that a command works on, its run, the same run again, and the result that a run left in its folder."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio.cli.app import Console, report_failure
from ace_studio.cli.follow import NO_ANSWER, follow
from ace_studio.cli.show_result import show_result
from ace_studio.cli.user_word import on_host
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.input_words import rows_of
from ace_studio.records.messages import (
    FileInspected,
    FileReport,
    InspectRequest,
    JobFinished,
    ModelCaptured,
    RunRequest,
)
from ace_studio.records.recipes.file import parse_recipe, read_recipe
from ace_studio.records.recipes.paths import require_file
from ace_studio.records.recipes.recipe import InputsChoice, ModelChoice, Recipe, ShapesFrom
from ace_studio.records.results import RESULT_NAME, Result, ResultStatus
from ace_studio.records.results.words import ms_words
from ace_studio.records.safe_file import decode_plain, make_output_folder, read_plain
from ace_studio.records.time_words import seconds_words
from ace_studio.session.choices import with_found, with_functions
from ace_studio.session.comparison.figures import ComparedRow, Difference, compared_rows
from ace_studio.session.device_figures import run_in
from ace_studio.session.kept.autosave import StartedRun, remove
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.graphs import KeptGraph, KeptGraphs
from ace_studio.session.kept.history import History, PastRun
from ace_studio.session.run_preview import seconds_of_others


def recipe_for(path: Path, *, entry: str = "", inputs: list[str] | None = None) -> tuple[Recipe, Path]:
    """The recipe in a ``.toml``, or one for a model file, and the folder that its paths are relative to.

    Raises: AceError if there is no such file, the recipe is invalid or an input is malformed.
    """
    if path.suffix == ".toml":
        recipe = read_recipe(path)
    else:
        require_file(path)
        if path.name in {"", ".."}:
            path = path.resolve()  # "." and ".." have no name
        recipe = Recipe(model=ModelChoice(source=path.name))
    folder = path.absolute().parent
    if entry:
        recipe = replace(recipe, model=replace(recipe.model, entry=_seen_from(folder, entry)))
    if inputs:
        kept = recipe.inputs
        given = InputsChoice(rows=rows_of(inputs), dims=kept.dims, shapes_from=kept.shapes_from)
        recipe = replace(recipe, inputs=given)
    return on_host(recipe), folder


def _seen_from(folder: Path, entry: str) -> str:
    """The entry ``file.py:name`` as in a recipe of this folder; a file that is not there may be in the present one."""
    file, colon, name = entry.rpartition(":")
    if not file or (folder / file).exists() or not Path(file).exists():
        return entry
    return f"{Path(os.path.relpath(file, folder)).as_posix()}{colon}{name}"


def filled_recipe_for(
    path: Path,
    console: Console,
    *,
    entry: str = "",
    inputs: list[str] | None = None,
    contain: bool | None = None,
    python: str = "",
) -> tuple[Recipe, Path]:
    """As `recipe_for`; the recipe of a model file also gets what the file makes clear, as in the window.

    That is its entry, weights beside it, example inputs, and the functions for calibration and evaluation. Where the
    entry is in another file (``weights.pt --entry model.py:make``), the functions of that file are used as well.

    Args:
        path: A recipe, a model, or a name such as ``timm:resnet18``.
        console: Told what was found.
        entry: Callable that makes the model.
        inputs: Example tensors in words, instead of those of the file.
        contain: Whether the engine is contained, as in `WorkerClient`.
        python: Its interpreter on this machine; empty for the usual one.

    Raises: AceError as `recipe_for`, or because the file was not read to its end.
    """
    recipe, folder = recipe_for(path, entry=entry, inputs=inputs)
    if path.suffix == ".toml" or not path.exists():
        return recipe, folder

    def report_on(file: Path) -> FileReport:
        request = InspectRequest(job="inspect", path=str(file.absolute()))
        return follow(request, console, contain=contain, python=python).need(FileInspected).report

    filled = with_found(recipe, report_on(path))
    code = recipe.model.entry.rpartition(":")[0]
    code_report = report_on(folder / code) if code and (folder / code).is_file() else None
    if code_report is not None:
        filled = with_functions(filled, code_report.entries, file=code)
    taken = (
        ("entry", recipe.model.entry, filled.model.entry),
        ("weights", recipe.model.weights, filled.model.weights),
        ("example inputs", recipe.inputs.tracing, filled.inputs.tracing),
        ("calibration", recipe.calibration.inputs, filled.calibration.inputs),
        ("evaluation", recipe.evaluate.function, filled.evaluate.function),
    )
    words = [f"{what} {after}" for what, before, after in taken if after != before]
    if words:
        files = path.name if code_report is None else f"{path.name} and {Path(code).name}"
        console.say(f"Taken from {files}: {', '.join(words)}")
    return filled, folder


def with_capture(
    recipe: Recipe,
    *,
    compare_rungs: bool = False,
    batch_only: bool = False,
    no_cache: bool = False,
    shapes_from: ShapesFrom | None = None,
) -> Recipe:
    """The recipe with the capture options that were given; an option that is absent changes nothing."""
    if shapes_from is not None:
        recipe = replace(recipe, inputs=replace(recipe.inputs, shapes_from=shapes_from))
    capture = replace(
        recipe.capture,
        compare_rungs=recipe.capture.compare_rungs or compare_rungs,
        batch_only=recipe.capture.batch_only or batch_only,
        cache=recipe.capture.cache and not no_cache,
    )
    return replace(recipe, capture=capture)


_EXIT_CODES = {
    ResultStatus.OK: ExitCode.DONE,
    ResultStatus.GOAL_NOT_MET: ExitCode.GOAL_NOT_MET,
    ResultStatus.FAILED: ExitCode.JOB_FAILED,
}
_REFUSED = (ExitCode.USAGE, ExitCode.NEEDS_TRUST)


def run_recipe(
    recipe: Recipe,
    folder: Path,
    *,
    out: Path,
    trust: bool,
    console: Console,
    contain: bool | None = None,
    python: str = "",
    answer_with: Callable[[Result], object] | None = None,
) -> int:
    """Run a recipe, add it to the history however it ends, show its result, and return the exit code.

    ``answer_with`` prints the result; by default it is the comparison, or the result as JSON.

    Raises: AceError(USAGE) if the output folder cannot be made.
    """
    make_output_folder(out)
    recipe = on_host(recipe)
    request = RunRequest(job="run", recipe=recipe, folder=str(folder), trust_all=trust, output=str(out.absolute()))
    history = History.open_default()
    if (usual := history.usual_seconds(folder, recipe.model.source)) is not None:
        console.say(f"Runs of this model took {seconds_words(usual)} so far")
    else:
        known = history.seconds_of_others(folder, recipe.model.source)
        if (others := seconds_of_others(known, _bytes_of(recipe, folder))) is not None:
            console.say(f"Runs of other models took {' to '.join(dict.fromkeys(map(seconds_words, others)))} here")
    title = f"{folder.name}/{recipe.model.source}"
    run = StartedRun.of(recipe, title=title, folder=str(folder.absolute()), output=request.output)
    note = history.started.note(run)
    try:
        answer = follow(request, console, contain=contain, python=python)
        found = answer.find(JobFinished)
        if answer.problems or found is None or found.result is None:
            problems = answer.problems or NO_ANSWER
            figures = run.figures()  # the folder may hold an earlier run's, which do not count
            _remember(partial(history.add_unfinished, run, problems[0]), console)
            plain = msgspec.to_builtins(figures) if figures is not None else {}
            # A run that was refused has changed nothing, so the result of an earlier one still holds.
            keeps = run.before and figures is None and problems[0].exit_code in _REFUSED
            return report_failure(problems, console, rungs=answer.rungs, out=None if keeps else out, **plain)
        result = found.result
        _remember(partial(history.remember, result, recipe, folder, output=out), console)
    finally:
        remove(note)
    _keep_graph(answer.find(ModelCaptured), result)
    if answer_with is not None:
        answer_with(result)
    else:
        console.answer(result, partial(show_result, folder=out))
    if result.error is not None:
        console.show_problems((result.error,))
        if result.error.code is ErrorCode.SYSTEM:
            return ExitCode.JOB_FAILED
    return _EXIT_CODES[result.status]


def _remember(add: Callable[[], object], console: Console) -> None:
    try:
        add()
    except AceError as error:  # a warning, never a failed run
        console.show_problems((error.problem,), word="warning")


def _keep_graph(captured: ModelCaptured | None, result: Result) -> None:
    """Keep the graph for the window, which shows it when the run is opened from the history."""
    if captured is not None:
        kept = KeptGraph(captured.graph, captured.sources)
        writing = KeptGraphs(UserFolders.of_user().graphs).keep(result.fingerprint, kept)
        if writing is not None:
            writing.join()


def read_result(folder: Path) -> Result:
    """Read the result of a finished run.

    Raises: AceError(NOT_FOUND or BAD_FILE), or the problems that ended the run before anything was measured.
    """
    with suppress(OSError, msgspec.DecodeError):
        failed = decode_plain(read_plain(folder / RESULT_NAME), _FailedRun)
        if failed.errors and not failed.runs:
            raise AceError(*failed.errors)
    return run_in(folder)


class _FailedRun(msgspec.Struct, frozen=True):
    """The ``result.json`` of a run that ended before its result."""

    errors: tuple[Problem, ...] = ()
    runs: tuple[object, ...] = ()


def recipe_of(result: Result, place: Path | None) -> tuple[Recipe, Path]:
    """The recipe that a result was made with, and the folder that its paths are relative to.

    The history knows both of a run of this user. Of another result they are words of its file: a folder that it names
    is not followed out of the folder in which it lies.

    Args:
        result: Of the run.
        place: The folder in which the result lies; None if it is the history's.

    Raises: AceError(NOT_FOUND) if the folder is gone, or the result does not hold its recipe; UNTRUSTED if a result
        that no run of this user wrote names a folder elsewhere.
    """
    named = Path(result.folder)
    if place is not None and (own := History.open_default().own_run(result)) is not None:
        result, named = replace(result, recipe=own.recipe_toml), Path(own.folder or result.folder)
    elif place is not None and result.folder and not named.resolve().is_relative_to(place.resolve()):
        raise AceError.of(
            ErrorCode.UNTRUSTED,
            "No run of yours wrote this result, and it names a folder elsewhere",
            why=f"result.json says that its recipe belongs to {named}; anybody may have written that",
            remedy="Name the recipe itself; with advise: --recipe RECIPE.",
            where=str(place),
        )
    if not result.recipe or not named.parts or not named.is_dir():
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            "The recipe of this run cannot be run again from here",
            why=f"its folder {named} is not there" if result.recipe else "an older ACE Studio wrote the result",
            remedy="Name the recipe itself; with advise: --recipe RECIPE.",
        )
    return parse_recipe(result.recipe, name="the recipe of the run"), named


def _bytes_of(recipe: Recipe, folder: Path) -> int | None:
    """Of the files with the model's weights; None if only its code is known."""
    path = folder / (recipe.model.weights or recipe.model.source)
    if path.suffix == ".py" or not path.exists():
        return None
    return sum(one.stat().st_size for one in (path.rglob("*") if path.is_dir() else (path,)) if one.is_file())


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """A run beside the run that it repeats."""

    of: str
    """Number in the history, or the folder."""
    same_model: bool
    """Whether model, inputs, capture options and versions are those of the first run, whatever was planned."""
    environment: dict[str, tuple[Any, Any]]
    """Versions and properties of the machine that differ, as they were and as they are."""
    rows: tuple[ComparedRow, ...]


def named_run(run: str) -> PastRun | None:
    """The run of the history that a word names; None for a folder. Raises: AceError if there is no such run."""
    is_folder = not run.isdecimal() or Path(run).is_dir()
    return None if is_folder else History.open_default().get(int(run))


def earlier_result(run: str) -> Result:
    """The result of a run: a number of the history, or a folder that a run wrote. Raises: AceError if there is none."""
    past = named_run(run)
    if past is None:
        return read_result(Path(run))
    return replace(past.result, recipe=past.recipe_toml, folder=past.folder or past.result.folder)


def repeat_run(
    run: str, *, out: Path, trust: bool, contain: bool | None = None, python: str = "", console: Console
) -> int:
    """Run the recipe of an earlier run again, show both beside each other, and return the exit code."""
    first = earlier_result(run)
    recipe, folder = recipe_of(first, Path(run) if named_run(run) is None else None)

    def answer(second: Result) -> None:
        repetition = compare(run, first, second)
        if console.as_json:
            console.print_json(msgspec.to_builtins(second) | {"repeats": repetition})
        else:
            show_result(second, console, out)
            show_repetition(repetition, console)

    return run_recipe(
        recipe, folder, out=out, trust=trust, contain=contain, python=python, console=console, answer_with=answer
    )


def compare(run: str, first: Result, second: Result) -> Repetition:
    """What a repetition shows beside the run that it repeats."""
    old, new = first.environment, second.environment
    changed = {key: (old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)}
    return Repetition(
        of=run,
        same_model=_captured(first) == _captured(second),
        environment=changed,
        rows=compared_rows(first, second),
    )


def _captured(result: Result) -> str:
    """Hash over what was captured; in older results, where it is missing, over the recipe too."""
    return result.capture.fingerprint if result.capture and result.capture.fingerprint else result.fingerprint


def show_repetition(repetition: Repetition, console: Console) -> None:
    """Print each figure as it was and as it is; a change within the noise is in brackets."""
    rows = [
        (
            row.name,
            _change(row.latency, ms_words, "{:.2f}x"),
            _change(row.metric, "{:.4f}", "{:+.4f}"),
            _change(row.sqnr, "{:.1f}", "{:+.1f}"),
            _change(row.size, lambda size: f"{size / 1e6:.3f}", "{:.2f}x"),
        )
        for row in repetition.rows
    ]
    console.print(f"Compared with run {repetition.of}; brackets: within the noise")
    console.print_table(("", "p50 ms", "metric", "SQNR dB", "size MB"), rows)
    if not repetition.same_model:
        console.print("The model, its inputs or the versions that captured it are not those of the first run")
    for key, (old, new) in repetition.environment.items():
        console.print(f"{key}: {old} -> {new}")


def _change(figure: Difference, value: str | Callable[[float], str], change: str) -> str:
    write = value.format if isinstance(value, str) else value
    if figure.first is None and figure.second is None:
        return ""
    if figure.first is None or figure.second is None:
        return " -> ".join("-" if one is None else write(one) for one in (figure.first, figure.second))
    said = change.format(figure.change)
    return f"{write(figure.first)} -> {write(figure.second)} {said if figure.is_clear else f'({said})'}"
