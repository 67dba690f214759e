"""What can be wrong with a recipe, found in one pass over the parsed TOML.

First the shape: every key and type against the records of `recipe`, so that a new field is known here at once.
Then the meaning, which is in `recipe_rules`.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from msgspec import inspect as types

from ace_studio.records.recipes import recipe
from ace_studio.records.recipes.contradictions import contradictions
from ace_studio.records.recipes.fault import Fault, listing_hint, nearest_hint, path_text
from ace_studio.records.recipes.plan import ActivationGrid, Precision, WeightGranularity
from ace_studio.records.recipes.rules import value_faults
from ace_studio.records.recipes.toml_lines import KeyPath
from ace_studio.records.tensors import DimChoice

_LARGEST_INTEGER = 2**53
_MOST_FAULTS = 100
"""A file with more is no recipe, and looking for the nearest key takes a while for each."""
_ENUM_NOUNS: dict[type, str] = {
    Precision: "a precision",
    WeightGranularity: "a granularity of weights",
    ActivationGrid: "a kind of grid",
    DimChoice: "a choice for a dimension",
    recipe.ControlKind: "a way to treat a function",
    recipe.Objective: "something to optimize",
    recipe.ScanChoice: "a choice for the sensitivity scan",
    recipe.Observer: "a way to find ranges",
    recipe.Subset: "a way to choose examples",
    recipe.ImproveMethod: "a method of improvement",
    recipe.PruneMethod: "a way to prune",
    recipe.Importance: "a measure of importance",
    recipe.FinetuneMethod: "a way to fine-tune",
}


def recipe_faults(document: Mapping[str, Any]) -> list[Fault]:
    """Every mistake in a parsed recipe of a known ``format``; empty if it can be converted."""
    misshapen = list(itertools.islice(_shape_faults(document, _RECIPE_TYPE, ()), _MOST_FAULTS))
    misshapen_paths = {fault.path for fault in misshapen}
    return [
        *misshapen,
        *(fault for fault in value_faults(document) if fault.path not in misshapen_paths),
        *contradictions(document),
    ]


# --- the shape: keys and types ---

_RECIPE_TYPE = cast(types.StructType, types.type_info(recipe.Recipe))
_OWNERS: dict[str, list[str]] = {}
for _table in _RECIPE_TYPE.fields:
    for _field in getattr(_table.type, "fields", ()):
        _OWNERS.setdefault(_field.encode_name, []).append(_table.encode_name)


def _kind_of(value: object) -> str:
    """The type of a TOML value, as a text for people."""
    words = {bool: "true/false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return words.get(type(value), "a date or time")


def _shape_faults(value: object, expected: types.Type, path: KeyPath) -> Iterator[Fault]:
    if isinstance(expected, types.UnionType):
        expected = _member_for(value, expected)
    yield from _CHECKS[type(expected)](value, expected, path)


def _member_for(value: object, union: types.UnionType) -> types.Type:
    """The member of the union to judge the value by: a word for a text, the plain type for the rest."""
    members = [member for member in union.types if not isinstance(member, types.NoneType)]
    wanted = (types.LiteralType, types.EnumType) if isinstance(value, str) else (types.IntType, types.FloatType)
    return next((member for member in members if isinstance(member, wanted)), members[0])


def _wrong_type(value: object, path: KeyPath, wanted: str) -> Fault:
    return Fault(path, f"{path_text(path)} is {_kind_of(value)}, but it must be {wanted}", remedy=f"give {wanted}")


def _check_struct(value: object, expected: types.StructType, path: KeyPath) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield _wrong_type(value, path, "a table")
        return
    fields = {field.encode_name: field for field in expected.fields}
    for key, item in value.items():
        if key in fields:
            yield from _shape_faults(item, fields[key].type, (*path, key))
        else:
            yield _unknown_key(key, path, fields)
    for name, field in fields.items():
        if field.required and name not in value:
            yield Fault(path, f"{path_text(path)} has no '{name}'", remedy=f"add '{name}'")


def _unknown_key(key: str, path: KeyPath, fields: Mapping[str, types.Field]) -> Fault:
    place = f"[{path_text(path)}]" if len(path) == 1 else path_text(path)
    what = f"'{key}' is not a key of {place}" if path else f"'{key}' is not a table of a recipe"
    hint = nearest_hint(key, fields)
    owners = [owner for owner in _OWNERS.get(key, []) if owner != (path[0] if path else "")]
    if owners and not hint.startswith("did you mean"):
        hint = "it belongs in " + " or ".join(f"[{owner}]" for owner in owners)
    return Fault((*path, key), what, why="a misspelt key would have no effect", remedy=hint)


def _check_list(value: object, expected: types.VarTupleType, path: KeyPath) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield _wrong_type(value, path, "a list")
        return
    for index, item in enumerate(value):
        yield from _shape_faults(item, expected.item_type, (*path, index))


def _check_dict(value: object, expected: types.DictType, path: KeyPath) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield _wrong_type(value, path, "a table")
        return
    for key, item in value.items():
        yield from _shape_faults(item, expected.value_type, (*path, key))


def _check_integer(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _wrong_type(value, path, "a whole number")
    elif abs(value) > _LARGEST_INTEGER:
        yield Fault(path, f"{path_text(path)} is too large", remedy=f"stay below {_LARGEST_INTEGER}")


def _check_number(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield _wrong_type(value, path, "a number")
    elif isinstance(value, int):
        yield from _check_integer(value, _, path)
    elif not math.isfinite(value):
        yield Fault(path, f"{path_text(path)} is {value}, which is not a finite number", remedy="give a finite number")


def _check_type(wanted: type, words: str) -> Callable[[object, Any, KeyPath], Iterator[Fault]]:
    def check(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
        if not isinstance(value, wanted):
            yield _wrong_type(value, path, words)
        elif isinstance(value, str) and "\0" in value:  # no path and no name of the system may hold one
            yield Fault(path, f"{path_text(path)} holds a NUL character", remedy="write it without")

    return check


def _check_enum(value: object, expected: types.EnumType, path: KeyPath) -> Iterator[Fault]:
    words = [str(member.value) for member in expected.cls]
    if not isinstance(value, str):
        yield _wrong_type(value, path, "one of the words " + ", ".join(words))
    elif value not in words:
        noun = _ENUM_NOUNS.get(expected.cls, "a known word")
        yield Fault(path, f"{path_text(path)}: '{value}' is not {noun}", remedy=listing_hint(value, words))


def _check_literal(value: object, expected: types.LiteralType, path: KeyPath) -> Iterator[Fault]:
    if value not in expected.values:
        words = " or ".join(f"'{word}'" for word in expected.values)
        yield Fault(
            path, f"{path_text(path)}: '{value}' is not a valid value", remedy=f"give a whole number or {words}"
        )


_CHECKS: dict[type[types.Type], Callable[[object, Any, KeyPath], Iterator[Fault]]] = {
    types.StructType: _check_struct,
    types.VarTupleType: _check_list,
    types.DictType: _check_dict,
    types.IntType: _check_integer,
    types.FloatType: _check_number,
    types.StrType: _check_type(str, "text in quotes"),
    types.BoolType: _check_type(bool, "true or false"),
    types.EnumType: _check_enum,
    types.LiteralType: _check_literal,
}
