"""Changing one thing in a recipe file that a person wrote: their comments, order and blanks stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipe import CaptureControl
from ace_studio.records.recipe_file import parse_recipe, read_recipe
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
    except (OSError, ValueError, TOMLKitError) as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"The controls could not be written into {path.name}",
            why=str(error),
            remedy="Add them by hand: " + "; ".join(_written(one) for one in new),
            where=str(path),
        ) from error
    return new


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
