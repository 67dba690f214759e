"""``run --repeat``: the same recipe again, and what differs from the first run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio.cli.app import Console
from ace_studio.cli.running import read_result, recipe_of, run_recipe
from ace_studio.cli.show_result import show_result
from ace_studio.records.results import Result
from ace_studio.session.comparison.figures import ComparedRow, Difference, compared_rows
from ace_studio.session.kept.history import History


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """A run beside the run that it repeats."""

    of: str
    """Number in the history, or the folder."""
    same_model: bool
    """Whether model, inputs, capture options and versions are those of the first run, whatever was planned."""
    environment: dict[str, tuple[Any, Any]]
    """Versions and properties of the machine that differ, as they were and as they are."""
    rows: tuple[ComparedRow, ...]


def earlier_result(run: str) -> Result:
    """The result of a run: a number of the history, or a folder that a run wrote.

    Raises: AceError if there is no such run.
    """
    if not run.isdecimal() or Path(run).is_dir():
        return read_result(Path(run))
    past = History.open_default().get(int(run))
    return replace(past.result, recipe=past.recipe_toml, folder=past.folder or past.result.folder)


def repeat_run(
    run: str, *, out: Path, trust: bool, contain: bool | None = None, python: str = "", console: Console
) -> int:
    """Run the recipe of an earlier run again, show both beside each other, and return the exit code."""
    first = earlier_result(run)
    recipe, folder = recipe_of(first)

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
            _change(row.latency, "{:.3f}", "{:.2f}x"),
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
