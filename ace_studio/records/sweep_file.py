"""From the file of a sweep, or from recipes, to the jobs. All mistakes are reported at once, each with its line."""

import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ace_studio.records.devices import is_device_name
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.input_words import rows_of
from ace_studio.records.recipes.fault import Fault, nearest_hint, path_text
from ace_studio.records.recipes.file import (
    checked_recipe,
    format_faults,
    located_problems,
    parse_toml,
    read_recipe_text,
)
from ace_studio.records.recipes.recipe import ShapesFrom
from ace_studio.records.recipes.toml_values import pair_text, value_text
from ace_studio.records.sweeps import (
    MOST_COMBINATIONS,
    MOST_JOBS,
    SWEEP_FORMAT,
    Axis,
    AxisValue,
    AxisWord,
    Sweep,
    SweepJob,
)

RECIPE_KEY = "recipe"
_KEYS = ("format", "recipes", "axes", "exclude", "files")
_NO_TEXTS: Mapping[str, str] = {}


def read_jobs(paths: Sequence[Path]) -> tuple[SweepJob, ...]:
    """The jobs of one sweep file, or of recipes as they are.

    Raises: AceError(RECIPE or NOT_FOUND) with every mistake.
    """
    sweep, folder, name, text = read_sweep(paths)
    return sweep_jobs(sweep, folder, name=name, text=text)


def read_sweep(paths: Sequence[Path]) -> tuple[Sweep, Path, str, str]:
    """The sweep of one file, or of recipes as they are; the folder of its paths; its name and its text in messages.

    Raises: as `read_jobs`, without what is wrong in a recipe.
    """
    texts = {path: read_recipe_text(path) for path in paths}
    first, text = next(iter(texts.items()))
    if "recipes" not in (document := parse_toml(text, first.name)):
        return Sweep(recipes=tuple(map(str, paths))), Path(), "the sweep", ""
    if len(paths) > 1:
        remedy = "name one file with 'recipes', or recipes only"
        raise AceError.of(
            ErrorCode.USAGE, f"{first.name} is a sweep; it cannot be mixed with other files", remedy=remedy
        )
    return checked_sweep(document, name=first.name, text=text), first.parent, first.name, text


def checked_sweep(document: Mapping[str, Any], *, name: str, text: str = "") -> Sweep:
    """The sweep of a TOML document, or of the same as Python objects.

    Raises: AceError(RECIPE) with every mistake, in the order of their lines.
    """
    faults = format_faults(document, "sweep", SWEEP_FORMAT) or list(_faults(document))
    if faults:
        raise AceError(*located_problems(faults, name=name, text=text))
    return msgspec.convert(document, Sweep)


def _faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    for key in document:
        if key not in _KEYS:
            yield Fault((key,), f"A sweep has no '{key}'", remedy=nearest_hint(key, _KEYS))
    recipes = document.get("recipes", ())
    if not recipes or not _is_list(recipes, str):
        yield Fault(("recipes",), "recipes must be a list of recipe files", remedy='write recipes = ["a.toml"]')
    files = document.get("files", ())
    if not _is_list(files, str) or any(not one or Path(one).is_absolute() for one in files):
        yield Fault(("files",), "files must be a list of patterns", remedy='write files = ["data/*.npz"]')
    axes = document.get("axes", {})
    if not isinstance(axes, Mapping):
        yield Fault(("axes",), "axes must be a table", remedy="write [axes] on a line of its own")
        return
    for axis, values in axes.items():
        yield from _axis_faults(axis, values)
    yield from _exclusion_faults(document.get("exclude", ()), axes, recipes)


def _exclusion_faults(exclude: Any, axes: Mapping[str, Any], recipes: Any) -> Iterator[Fault]:
    if not _is_list(exclude, Mapping):
        yield Fault(("exclude",), "exclude must be tables", remedy="write [[exclude]] above each")
        return
    known = {str(axis): values for axis, values in axes.items()} | {RECIPE_KEY: recipes}
    for at, one in enumerate(exclude):
        for key, value in one.items():
            if key not in known:
                yield Fault(("exclude", at, key), f"There is no axis '{key}'", remedy=nearest_hint(key, known))
            elif value not in known[key]:
                why = f"the axis has {', '.join(str(word_of(found)) for found in known[key])}"
                yield Fault(("exclude", at, key), f"'{key}' is never {word_of(value)}", why=why)


def _axis_faults(axis: str, values: object) -> Iterator[Fault]:
    path = ("axes", axis)
    if axis not in set(Axis):
        yield Fault(path, f"There is no axis '{axis}'", remedy=nearest_hint(axis, list(Axis)))
    elif not isinstance(values, list | tuple) or not values:
        yield Fault(path, f"{path_text(path)} must be a list of values", remedy=f"write {axis} = [...]")
    elif len({word_of(value) for value in values}) < len(values):
        yield Fault(path, f"{path_text(path)} names a value twice", remedy="each value gives its own jobs")


def _is_list(value: object, kind: type) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, kind) for one in value)


def word_of(value: AxisValue) -> AxisWord:
    """A value of an axis as rows show it."""
    return value if isinstance(value, str | int | float) else msgspec.json.encode(value).decode()


Cell = tuple[str, dict[Axis, AxisValue]]
"""A recipe, with one value of every axis."""


def sweep_cells(sweep: Sweep, *, name: str) -> list[Cell]:
    """Every combination of recipes and axes that is not excluded.

    Raises: AceError(RECIPE) if they are none or too many.
    """
    kinds, values = tuple(sweep.axes), tuple(sweep.axes.values())
    count = math.prod(map(len, values), start=len(sweep.recipes))
    if count > MOST_COMBINATIONS:  # to look at each of them would take for ever
        why = f"at most {MOST_COMBINATIONS:,} are looked at for [[exclude]], and {MOST_JOBS:,} jobs may be left"
        what = f"The axes of the sweep give {count:,} combinations"
        raise AceError.of(ErrorCode.RECIPE, what, why=why, remedy="give [axes] fewer values", where=name)
    cells = [
        (recipe, dict(zip(kinds, combination, strict=True)))
        for recipe in sweep.recipes
        for combination in itertools.product(*values)
    ]
    cells = [cell for cell in cells if not any(_is_excluded(*cell, one) for one in sweep.exclude)]
    if not cells or len(cells) > MOST_JOBS:
        what = f"The sweep has {len(cells):,} jobs" if cells else "Every job of the sweep is excluded"
        why = f"at most {MOST_JOBS:,} fit one table" if cells else "[[exclude]] leaves nothing"
        raise AceError.of(ErrorCode.RECIPE, what, why=why, remedy="change [axes] or [[exclude]]", where=name)
    return cells


def sweep_jobs(
    sweep: Sweep, folder: Path, *, name: str, text: str = "", texts: Mapping[str, str] = _NO_TEXTS
) -> tuple[SweepJob, ...]:
    """The jobs: for every recipe, every combination of the axes that is not excluded.

    ``texts``: recipe -> its text, where that is not what is in its file.

    Raises: AceError(RECIPE) with every recipe that is wrong, alone or with values of the axes, or where there are too
    many jobs.
    """
    cells = sweep_cells(sweep, name=name)
    documents = checked_documents(sweep, folder, name=name, text=text, texts=texts)
    problems: dict[Problem, None] = {}
    jobs = []
    for at, (recipe, axes) in enumerate(cells):
        try:
            made = _recipe_with(documents[recipe], axes)
            checked = checked_recipe(made, name=Path(recipe).name)
        except AceError as error:
            problems |= dict.fromkeys(error.problems)
            continue
        jobs.append(
            SweepJob(
                job=f"{at + 1:0{len(str(len(cells)))}}",
                recipe_path=recipe,
                axes={str(axis): word_of(value) for axis, value in axes.items()},
                recipe=checked,
                folder=str((folder / recipe).absolute().parent),
                files=sweep.files,
            )
        )
    if problems:
        raise AceError(*problems)
    return tuple(jobs)


def checked_documents(
    sweep: Sweep, folder: Path, *, name: str, text: str = "", texts: Mapping[str, str] = _NO_TEXTS
) -> dict[str, dict[str, Any]]:
    """The document of each recipe. Raises: AceError if one is wrong, or a value of an axis does not fit it."""
    documents: dict[str, dict[str, Any]] = {}
    problems, faults = list[Problem](), list[Fault]()
    for recipe in sweep.recipes:
        try:
            recipe_text = texts[recipe] if recipe in texts else read_recipe_text(folder / recipe)
            documents[recipe] = parse_toml(recipe_text, recipe)
            checked_recipe(documents[recipe], name=recipe, text=recipe_text)
        except AceError as error:
            problems += error.problems
            continue
        for axis, values in sweep.axes.items():
            for at, value in enumerate(values):
                try:
                    checked_recipe(_recipe_with(documents[recipe], {axis: value}), name=recipe)
                except AceError as error:
                    path = ("axes", str(axis), at)
                    whys = [f"{one.why} (with {recipe})".lstrip() for one in error.problems]
                    faults += [
                        Fault(path, one.what, why, one.remedy) for one, why in zip(error.problems, whys, strict=True)
                    ]
    if problems or faults:
        raise AceError(*problems, *located_problems(faults, name=name, text=text))
    return documents


def _is_excluded(recipe: str, axes: Mapping[Axis, AxisValue], excluded: Mapping[str, AxisValue]) -> bool:
    found = {str(axis): value for axis, value in axes.items()} | {RECIPE_KEY: recipe}
    return all(found[key] == value for key, value in excluded.items())


def _recipe_with(document: Mapping[str, Any], axes: Mapping[Axis, AxisValue]) -> dict[str, Any]:
    """The document of a recipe with the values of the axes in their places."""
    made = dict(document)
    for axis, value in axes.items():
        _SETTERS[axis](made, value)
    return made


def _set_plan(document: dict[str, Any], value: AxisValue) -> None:
    document.pop("plan", None)
    if value != "auto":
        document["plan"] = value if isinstance(value, dict) else {"default": value}


def _set_goal(document: dict[str, Any], value: AxisValue) -> None:
    optimize = {key: kept for key, kept in document.pop("goal", {}).items() if key == "optimize"}
    if value != "none":
        document["goal"] = optimize | (value if isinstance(value, dict) else {"max_drop": value})


def _set_target(document: dict[str, Any], value: AxisValue) -> None:
    document["targets"] = document.get("targets", {}) | {"names": value if isinstance(value, list) else [value]}


def _set_shape(document: dict[str, Any], value: AxisValue) -> None:
    """One row of examples with these shapes; types and values are those of the recipe's first row, where it has one."""
    words = value if isinstance(value, list) else [value]
    (row,) = rows_of([str(word) for word in words])[:1]
    inputs = {key: kept for key, kept in document.get("inputs", {}).items() if key not in {"tracing", "caught"}}
    before: dict[str, Any] = next(iter(inputs.get("rows", ())), {})
    given = {
        name: {"shape": list(spec.shape), "dtype": spec.dtype, "values": spec.values} for name, spec in row.items()
    }
    for word, name in zip(words, given, strict=False):
        if ":" not in str(word) and isinstance(before.get(name), dict):
            given[name] = before[name] | {"shape": given[name]["shape"]}
    # The data may have other sizes, such as one sample instead of a batch: they are free then.
    document["inputs"] = {"shapes_from": str(ShapesFrom.DATA)} | inputs | {"rows": [before | given]}


def _set_threads(document: dict[str, Any], value: AxisValue) -> None:
    document["measure"] = document.get("measure", {}) | {"threads": value}


def _set_device(document: dict[str, Any], value: AxisValue) -> None:
    if is_device_name(value):
        return  # one of the user's list: the run is the same, and its artifact is measured there afterwards
    document["measure"] = document.get("measure", {}) | {"device": value}


_SETTERS = {
    Axis.PLAN: _set_plan,
    Axis.GOAL: _set_goal,
    Axis.TARGET: _set_target,
    Axis.SHAPE: _set_shape,
    Axis.THREADS: _set_threads,
    Axis.DEVICE: _set_device,
}


def sweep_text(sweep: Sweep) -> str:
    """The file of a sweep."""
    lines = [f"format = {SWEEP_FORMAT}", pair_text("recipes", sweep.recipes)]
    lines += [pair_text("files", sweep.files)] if sweep.files else []
    lines += ["", "[axes]", *(pair_text(str(axis), values) for axis, values in sweep.axes.items())]
    for one in sweep.exclude:
        lines += ["", "[[exclude]]", *(pair_text(key, value) for key, value in one.items())]
    return "\n".join(lines) + "\n"


def axis_text(values: Sequence[AxisValue]) -> str:
    """The values of an axis on one line, as `axis_values` reads them: words without quotes where that is clear."""
    return ", ".join(
        value if isinstance(value, str) and axis_values(value) == (value,) else value_text(value) for value in values
    )


def axis_values(text: str) -> tuple[AxisValue, ...]:
    """The values that are written in a field: TOML between commas; what is no TOML is a word.

    Raises: AceError(RECIPE) if a bracket or a quote is not closed.
    """
    return tuple(_axis_value(piece) for piece in _pieces(text, ","))


def exclusion_text(exclude: Sequence[Mapping[str, AxisValue]]) -> str:
    """The exclusions on one line, as `exclusions_of` reads them: ``plan = fp32, threads = 2; target = eager``."""
    return "; ".join(", ".join(f"{key} = {axis_text([value])}" for key, value in one.items()) for one in exclude)


def exclusions_of(text: str) -> tuple[dict[str, AxisValue], ...]:
    """The exclusions that are written in a field. Raises: AceError(RECIPE) if one is not closed, or has no value."""
    return tuple(dict(map(_excluded_pair, _pieces(one, ","))) for one in _pieces(text, ";"))


def _excluded_pair(piece: str) -> tuple[str, AxisValue]:
    key, _, value = (part.strip() for part in piece.partition("="))
    if not key or not value:
        raise AceError.of(ErrorCode.RECIPE, f"{piece} names no axis with a value", remedy="write plan = fp32")
    return key, _axis_value(value)


def _axis_value(piece: str) -> AxisValue:
    try:
        found: AxisValue = tomllib.loads(f"v = {piece}")["v"]
    except tomllib.TOMLDecodeError:
        return piece
    is_value = isinstance(found, str | int | float | dict | list) and not isinstance(found, bool)
    return found if is_value else piece


def _pieces(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that are in no brackets and in no quotes."""
    piece, depth, quote = "", 0, ""
    for letter in text:
        if letter == separator and not depth and not quote:
            if piece.strip():
                yield piece.strip()
            piece = ""
            continue
        piece += letter
        if quote or letter in "\"'":
            quote = "" if letter == quote else quote or letter
        else:
            depth += (letter in "[{") - (letter in "]}")
    if depth or quote:
        what = f"{text.strip()} is not closed"
        raise AceError.of(ErrorCode.RECIPE, what, remedy=f"close {quote or 'the bracket'}")
    if piece.strip():
        yield piece.strip()
