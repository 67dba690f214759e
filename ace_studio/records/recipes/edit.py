"""Changes of a recipe, and of a recipe file that a person wrote: its comments, order and blanks stay."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import checked_recipe, read_recipe, read_recipe_text, recipe_text, write_recipe
from ace_studio.records.recipes.holding import holding
from ace_studio.records.recipes.recipe import CaptureControl, Recipe


def add_controls(path: Path, controls: Sequence[CaptureControl]) -> tuple[CaptureControl, ...]:
    """Append controls to those of a recipe file; the file as it was is kept as ``NAME.bak``.

    Returns: Those that were new.
    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    with holding(path):
        recipe = read_recipe(path)
        new = tuple(dict.fromkeys(one for one in controls if one not in recipe.capture.controls))
        if new:
            _rewrite(
                path,
                replace(recipe, capture=replace(recipe.capture, controls=(*recipe.capture.controls, *new))),
                failure=f"The controls could not be written into {path.name}",
                remedy="Add them by hand: "
                + "; ".join(f'[[capture.controls]] function = "{one.function}" as = "{one.treat_as}"' for one in new),
            )
    return new


def name_caught_inputs(path: Path, caught: str) -> None:
    """Change a recipe to trace with caught inputs instead of its function or rows.

    Args:
        path: The recipe; the file as it was is kept as ``NAME.bak``.
        caught: Path of the caught inputs, relative to the recipe.

    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    with holding(path):
        recipe = read_recipe(path)
        _rewrite(
            path,
            replace(recipe, inputs=replace(recipe.inputs, caught=caught, tracing="", rows=())),
            failure=f"The caught inputs could not be named in {path.name}",
            remedy=f'Write caught = "{caught}" below [inputs] by hand, and remove tracing and rows.',
        )


def _rewrite(path: Path, recipe: Recipe, *, failure: str, remedy: str) -> None:
    try:
        write_recipe(recipe, path, text=read_recipe_text(path))
    except AceError as error:
        why = error.problem.why
        raise AceError.of(ErrorCode.RECIPE, failure, why=why, remedy=remedy, where=str(path)) from error


def with_changes(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with some values set: ``{"plan": {"default": "bf16"}}``. None removes a key; the rest stays.

    Raises: AceError(RECIPE) with every problem if the changed recipe is invalid.
    """
    document = tomllib.loads(recipe_text(recipe))
    for name, values in changes.items():
        merged = {**document.get(name, {}), **values}
        document[name] = {key: value for key, value in merged.items() if value is not None}
    return checked_recipe(document, name="the changed recipe")
