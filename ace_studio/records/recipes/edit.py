"""Changes of a recipe, and of a recipe file that a person wrote: its comments, order and blanks stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from msgspec.structs import replace
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import parse_recipe, read_recipe, recipe_text
from ace_studio.records.recipes.recipe import CaptureControl, Recipe
from ace_studio.records.safe_file import write_atomically


def add_controls(path: Path, controls: Sequence[CaptureControl]) -> tuple[CaptureControl, ...]:
    """Append controls to those of a recipe file; the file as it was is kept as ``NAME.bak``.

    Returns: Those that were new.
    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    recipe = read_recipe(path)
    new = tuple(dict.fromkeys(one for one in controls if one not in recipe.capture.controls))
    if new:
        _rewrite(
            path,
            replace(recipe, capture=replace(recipe.capture, controls=(*recipe.capture.controls, *new))),
            lambda text: _with_controls(text, new),
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
    recipe = read_recipe(path)
    _rewrite(
        path,
        replace(recipe, inputs=replace(recipe.inputs, caught=caught, tracing="", rows=())),
        lambda text: _changed_text(text, {"inputs": {"tracing": None, "rows": None, "caught": caught}}),
        failure=f"The caught inputs could not be named in {path.name}",
        remedy=f'Write caught = "{caught}" below [inputs] by hand, and remove tracing and rows.',
    )


def _rewrite(path: Path, expected: Recipe, change: Callable[[str], str], *, failure: str, remedy: str) -> None:
    """Change the text of a recipe file, unless the changed text would not be the expected recipe."""
    try:
        changed = change(path.read_bytes().decode("utf-8-sig"))
        if parse_recipe(changed, name=path.name) != expected:
            raise ValueError("the changed text would not give the expected recipe")
        write_atomically(path, changed.encode(), keep_backup=True)
    except (AceError, OSError, ValueError, TOMLKitError) as error:
        why = error.problem.what if isinstance(error, AceError) else str(error)
        raise AceError.of(ErrorCode.RECIPE, failure, why=why, remedy=remedy, where=str(path)) from error


def with_changes(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with some values set: ``{"plan": {"default": "bf16"}}``. None removes a key; the rest stays.

    Raises: AceError(RECIPE) with every problem if the changed recipe is invalid.
    """
    return parse_recipe(_changed_text(recipe_text(recipe), changes), name="the changed recipe")


def _changed_text(text: str, changes: Mapping[str, Any]) -> str:
    document: Any = tomlkit.parse(text)
    for name, values in changes.items():
        if name not in document:
            document[name] = tomlkit.table()
        for key, value in values.items():
            document[name].pop(key, None)
            if value is not None:
                document[name][key] = value
    return tomlkit.dumps(document)


def _with_controls(text: str, controls: Sequence[CaptureControl]) -> str:
    """The text with one table per control, in the form in which it has controls already."""
    document: Any = tomlkit.parse(text)
    capture = document.get("capture")
    listed = capture.get("controls") if capture is not None else None
    if listed is not None and not isinstance(listed, AoT):
        for control in controls:
            listed.append(_filled(tomlkit.inline_table(), control))
        return tomlkit.dumps(document)
    # At the end of the file a table of its own is right whatever stands before it.
    lines = [text.rstrip("\n"), ""]
    for control in controls:
        table = _filled(tomlkit.table(), control)
        lines += ["[[capture.controls]]", tomlkit.dumps(table).rstrip("\n"), ""]
    return "\n".join(lines)


def _filled(table: Any, control: CaptureControl) -> Any:
    table.add("function", control.function)
    table.add("as", str(control.treat_as.value))
    return table
