"""Reading and writing a recipe as TOML, ``format = 1``. All problems are reported at once, each with its line."""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.recipes.recipe import RECIPE_FORMAT, Recipe
from ace_studio.records.recipes.toml_values import changed_fields, pair_text
from ace_studio.records.roots import present
from ace_studio.records.safe_file import read_plain, write_atomically

if TYPE_CHECKING:
    from ace_studio.records.recipes.fault import Fault
    from ace_studio.records.recipes.toml_lines import KeyPath

_LARGEST_RECIPE_BYTES = 4_000_000
_BYTE_ORDER_MARK = "\ufeff"
"""Some editors of Windows begin a text with it."""
_SYNTAX_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_recipe(path: Path) -> Recipe:
    """Read a recipe file.

    Raises: AceError(NOT_FOUND) if there is no such file; AceError(RECIPE) with every problem and its line.
    """
    return parse_recipe(read_recipe_text(path), name=path.name)


def parse_recipe(text: str, *, name: str) -> Recipe:
    """Read the text of a recipe; ``name`` is what problems call it (``NAME:LINE``).

    Raises: AceError(RECIPE) with every problem, in the order of their lines.
    """
    return checked_recipe(parse_toml(text, name), name=name, text=text)


def checked_recipe(document: Mapping[str, Any], *, name: str, text: str = "") -> Recipe:
    """The recipe of a TOML document; ``text`` is where problems find their lines.

    Raises: AceError(RECIPE) with every problem, in the order of their lines.
    """
    from ace_studio.records.recipes.check import recipe_faults  # noqa: PLC0415 - not needed for the first picture

    faults = format_faults(document, "recipe", RECIPE_FORMAT) or recipe_faults(document)
    if faults:
        raise AceError(*located_problems(faults, name=name, text=text))
    return msgspec.convert(document, Recipe)


def located_problems(faults: Sequence[Fault], *, name: str, text: str) -> list[Problem]:
    """Faults in the document of a TOML text as problems, in the order of their lines."""
    from ace_studio.records.recipes.toml_lines import key_lines  # noqa: PLC0415 - not needed for the first picture

    lines = key_lines(text.removeprefix(_BYTE_ORDER_MARK))
    located = sorted(((_line_of(fault.path, lines), fault) for fault in faults), key=lambda pair: pair[0])
    return [_problem(fault, f"{name}:{line}") for line, fault in located]


def read_recipe_text(path: Path) -> str:
    """The text of a recipe file, which need not be a valid recipe.

    Raises: AceError(NOT_FOUND) if there is no such file; AceError(RECIPE) if it is no text of a page or so.
    """
    return _decode(_read_bytes(path), path.name)


def write_recipe(recipe: Recipe, path: Path, *, text: str = "") -> str:
    """Save the recipe atomically, and return the text that was written; the old file is kept as ``NAME.bak``.

    With the ``text`` of an earlier recipe, everything in it stays but the values that differ.

    Raises: AceError(RECIPE) if it cannot be saved; the file then has its old content.
    """
    new_text = text_with(text, recipe) if text else recipe_text(recipe)
    what, reasons = f"{path.name} could not be saved", (OSError, UnicodeEncodeError)
    remedy = "save it under another name or in another folder; the file that was there is untouched"
    with explained(ErrorCode.RECIPE, what, remedy=remedy, where=path, of=reasons):
        write_atomically(path, new_text.encode(), keep_backup=True)
    return new_text


def text_with(text: str, recipe: Recipe) -> str:
    """The text of a recipe, changed to be another: comments, order and the lines of equal values stay.

    A text that is no recipe, or that cannot be changed in place, is replaced as a whole.
    """
    from ace_studio.records.recipes.toml_splice import splice  # noqa: PLC0415 - not needed for the first picture

    mark = text[:1] if text.startswith(_BYTE_ORDER_MARK) else ""
    text = text.removeprefix(mark)
    with suppress(AceError, LookupError, TypeError, ValueError):  # also a notation that `splice` does not know
        before = parse_recipe(text, name="recipe")
        if before == recipe:
            return mark + text
        old, new = (msgspec.json.decode(msgspec.json.encode(one)) for one in (before, recipe))
        written = tomllib.loads(recipe_text(recipe))
        for keep_headers in (True, False):
            changed = splice(text, old=old, new=new, written=written, keep_headers=keep_headers)
            with suppress(AceError):
                if parse_recipe(changed, name="recipe") == recipe:
                    return mark + changed
    return mark + recipe_text(recipe)


def recipe_text(recipe: Recipe) -> str:
    """The recipe as TOML: ``format`` and whatever differs from the defaults, always in the same order."""
    lines = [f"format = {recipe.format}"]
    for field in msgspec.structs.fields(Recipe):
        table = getattr(recipe, field.name)
        if isinstance(table, msgspec.Struct) and table != field.default:
            lines += _table_lines(field.encode_name, table) or _first_line(field.encode_name, table)
    return "\n".join(lines) + "\n"


def _read_bytes(path: Path) -> bytes:
    present.get().readable(path)
    try:
        if path.is_dir():
            raise AceError.of(
                ErrorCode.RECIPE,
                f"{path} is a folder, not a recipe",
                remedy="give the .toml file inside it",
                where=str(path),
            )
        return read_plain(path, most=_LARGEST_RECIPE_BYTES)
    except FileNotFoundError as error:
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"There is no file {path.name}",
            remedy="check the path; `ace-studio demo` shows a recipe that works",
            where=str(path),
        ) from error
    except (OSError, ValueError) as error:
        is_large = getattr(error, "errno", 0) == errno.EFBIG
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{path.name} is too large to be a recipe" if is_large else f"{path.name} could not be read",
            why=getattr(error, "strerror", None) or str(error),
            remedy="give the .toml file; a model is opened on its own"
            if is_large
            else "check the path and its permissions",
            where=str(path),
        ) from error


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{name} is not UTF-8 text",
            why="it is UTF-16 text" if is_utf16 else f"byte 0x{content[error.start]:02x} does not belong there",
            remedy="save it as UTF-8 in your editor",
            where=f"{name}:{line}",
        ) from error


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The document of a TOML text, which may begin with a byte order mark.

    Raises: AceError(RECIPE) with the line where it is no TOML.
    """
    text = text.removeprefix(_BYTE_ORDER_MARK)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _SYNTAX_PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        source = text.split("\n")[line - 1].strip() if line <= text.count("\n") + 1 else ""
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{name} is not valid TOML: {_SYNTAX_PLACE.sub('', str(error))}",
            why=f"line {line} reads `{source}`" if source else "the text ends too early",
            remedy='text goes in "quotes", a list in [brackets], and every key may appear only once',
            where=f"{name}:{line}",
        ) from error
    except (RecursionError, ValueError) as error:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{name} cannot be read as TOML",
            why="it nests too deeply" if isinstance(error, RecursionError) else str(error),
            remedy="a recipe is a page of text; check that this is one",
            where=f"{name}:1",
        ) from error


def format_faults(document: Mapping[str, Any], kind: str, latest: int) -> list[Fault]:
    """Mistakes in ``format``. If there are any, nothing else is checked, because another format has other rules."""
    from ace_studio.records.recipes.check import recipe_faults  # noqa: PLC0415 - not needed for the first picture
    from ace_studio.records.recipes.fault import Fault  # noqa: PLC0415

    path: KeyPath = ("format",)
    if "format" not in document:
        why = f"the first line of a {kind} names its format"
        fault = Fault((), f"The {kind} has no 'format'", why=why, remedy=f"begin it with `format = {latest}`")
        return [fault, *(recipe_faults(document) if kind == "recipe" else ())]
    found = document["format"]
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        return [Fault(path, f"format is {found!r}, but it must be a whole number", remedy=f"write {latest}")]
    if found > latest:
        what = f"The {kind} has format {found}; this ACE Studio reads up to {latest}"
        return [Fault(path, what, why="a newer ACE Studio wrote it", remedy="update ACE Studio")]
    return []


def _line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """The line of the place, or of the innermost key or table around it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _problem(fault: Fault, where: str) -> Problem:
    return Problem(code=ErrorCode.RECIPE, what=fault.what, why=fault.why, remedy=fault.remedy, where=where)


def _table_lines(name: str, table: msgspec.Struct) -> list[str]:
    """A ``[table]`` with its values, then its lists of tables and its sub-tables; nothing if all is default."""
    values, lists, tables = [], [], []
    for key, value in changed_fields(table):
        if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct | dict):
            for item in value:
                pairs = item.items() if isinstance(item, dict) else changed_fields(item)
                lists += ["", f"[[{name}.{key}]]", *(pair_text(inner, content) for inner, content in pairs)]
        elif isinstance(value, dict):
            tables += ["", f"[{name}.{key}]", *(pair_text(inner, content) for inner, content in value.items())]
        else:
            values.append(pair_text(key, value))
    header = ["", f"[{name}]", *values] if values else []
    return [*header, *lists, *tables]


def _first_line(name: str, table: msgspec.Struct) -> list[str]:
    """A table that differs by its presence only (``[plan]`` means that the goal does not choose the precisions)."""
    first = msgspec.structs.fields(type(table))[0]
    return ["", f"[{name}]", pair_text(first.encode_name, getattr(table, first.name))]
