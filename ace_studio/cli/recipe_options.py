"""The recipe that a command works on: read from a file, or made for a model, and changed by the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import InputsChoice, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec, read_values


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
    changes: dict[str, Any] = {}
    if compare_rungs:
        changes["compare_rungs"] = True
    if batch_only:
        changes["batch_only"] = True
    if no_cache:
        changes["cache"] = False
    return replace(recipe, capture=replace(recipe.capture, **changes))


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
