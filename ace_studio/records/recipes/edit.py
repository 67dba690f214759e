"""Changing one thing in a recipe file that a person wrote: their comments, order and blanks stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import parse_recipe, read_recipe, recipe_text
from ace_studio.records.recipes.recipe import CaptureControl, Recipe
from ace_studio.records.safe_file import write_atomically


def add_controls(path: Path, controls: Sequence[CaptureControl]) -> tuple[CaptureControl, ...]:
    """Put controls behind those that a recipe file has; what was there before is kept as ``NAME.bak``.

    Returns: Those that were new.
    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    recipe = read_recipe(path)
    new = tuple(dict.fromkeys(one for one in controls if one not in recipe.capture.controls))
    if not new:
        return ()
    text = path.read_bytes().decode("utf-8-sig")
    wanted = msgspec.structs.replace(recipe.capture, controls=(*recipe.capture.controls, *new))
    try:
        changed = _with_controls(text, new)
        if parse_recipe(changed, name=path.name) != msgspec.structs.replace(recipe, capture=wanted):
            raise ValueError("the changed text means something else")
        write_atomically(path, changed.encode(), keep_backup=True)
    except (AceError, OSError, ValueError, TOMLKitError) as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The controls could not be written into {path.name}",
            why=error.problem.what if isinstance(error, AceError) else str(error),
            remedy="Add them by hand: " + "; ".join(_written(one) for one in new),
            where=str(path),
        ) from error
    return new


def name_caught_inputs(path: Path, caught: str) -> None:
    """Let a recipe trace with inputs that a script was seen to use, instead of its function or rows.

    Args:
        path: The recipe; what was there before is kept as ``NAME.bak``.
        caught: Path of the caught inputs, relative to the recipe.

    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    recipe = read_recipe(path)
    inputs = msgspec.structs.replace(recipe.inputs, caught=caught, tracing="", rows=())
    text = path.read_bytes().decode("utf-8-sig")
    try:
        document: Any = tomlkit.parse(text)
        if "inputs" not in document:
            document["inputs"] = tomlkit.table()
        for key in ("tracing", "rows"):
            document["inputs"].pop(key, None)
        document["inputs"]["caught"] = caught
        changed = tomlkit.dumps(document)
        if parse_recipe(changed, name=path.name) != msgspec.structs.replace(recipe, inputs=inputs):
            raise ValueError("the changed text means something else")
        write_atomically(path, changed.encode(), keep_backup=True)
    except (OSError, ValueError, TOMLKitError) as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The caught inputs could not be named in {path.name}",
            why=str(error),
            remedy=f'Write caught = "{caught}" below [inputs] by hand, and remove tracing and rows.',
            where=str(path),
        ) from error


def with_changes(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with some values set: ``{"plan": {"default": "bf16"}}``. None takes a key out; the rest stays.

    Raises: AceError(RECIPE) with every problem if the outcome is no valid recipe.
    """
    return parse_recipe(_changed_text(recipe_text(recipe), changes), name="the changed recipe")


def write_changes(path: Path, changes: Mapping[str, Any]) -> None:
    """Set values in a recipe file as `with_changes` does; what was there before is kept as ``NAME.bak``.

    Raises: AceError(NOT_FOUND or RECIPE) if the file is no recipe, or cannot be written; it then is as it was.
    """
    wanted = with_changes(read_recipe(path), changes)
    try:
        changed = _changed_text(path.read_bytes().decode("utf-8-sig"), changes)
        if parse_recipe(changed, name=path.name) != wanted:
            raise ValueError("the changed text means something else")
        write_atomically(path, changed.encode(), keep_backup=True)
    except (OSError, ValueError, TOMLKitError) as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The changes could not be written into {path.name}",
            why=str(error),
            remedy=f"Set by hand: {dict(changes)}",
            where=str(path),
        ) from error


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


def _written(control: CaptureControl) -> str:
    return f'[[capture.controls]] function = "{control.function}" as = "{control.treat_as}"'


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
