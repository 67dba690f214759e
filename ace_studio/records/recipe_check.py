"""What can be wrong with a recipe, found in one pass over the parsed TOML.

First the shape: every key and type against the records of `recipe`, so that a new field is known here at once.
Then the meaning: `_RULES` has one row per value with rules of its own, and a few checks look at several values.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from msgspec import inspect as types

from ace_studio.records.plan import Precision, rule_problem
from ace_studio.records.recipe import ALL_RUNGS, TARGET_NAMES, ControlKind, Objective, Recipe
from ace_studio.records.tensors import DimChoice, ValueSource, bytes_per_element
from ace_studio.records.toml_lines import KeyPath

_LARGEST_INTEGER = 2**53
_DTYPES = tuple(
    name
    for name in (
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
        "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    )
    if bytes_per_element(name)
)  # fmt: skip
_ENUM_NOUNS: dict[type, str] = {
    Precision: "a precision",
    DimChoice: "a choice for a dimension",
    ControlKind: "a way to treat a function",
    Objective: "something to optimize",
}
_REFERENCE = re.compile(r"(?:.+\.py:)?[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_CONTROL = re.compile(r"[^:\s]+(?::[^:\s]+)?")
_DIM_KEY = re.compile(r"(.+)\.([0-9]{1,9})", re.DOTALL)
_FILE_VALUE = re.compile(r".*[./\\].*", re.DOTALL)


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong at one place of the document, before anybody looked up its line."""

    path: KeyPath
    what: str
    why: str = ""
    remedy: str = ""


def recipe_faults(document: Mapping[str, Any]) -> list[Fault]:
    """Everything that is wrong with a parsed recipe whose ``format`` is ours; empty if it can be converted."""
    misshapen = list(_shape_faults(document, _RECIPE_TYPE, ()))
    told = {fault.path for fault in misshapen}
    return [
        *misshapen,
        *(fault for fault in _value_faults(document) if fault.path not in told),
        *_meaning_faults(document),
    ]


def path_text(path: KeyPath) -> str:
    """A place in the document as a person writes it: ``[goal] max_drop``, ``[inputs] rows[2].x``."""
    text = ""
    for depth, part in enumerate(path):
        if isinstance(part, int):
            text += f"[{part + 1}]"
        elif depth == 0:
            text = part
        else:
            text += ("" if depth == 1 else ".") + (f'"{part}"' if "." in part else part)
        if depth == 0 and len(path) > 1:
            text = f"[{text}] "
    return text


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the closest of the known words, or the list of them."""
    choices = list(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    close = close or [choice for choice in choices if len(word) > 2 and choice.startswith(word)][:1]
    return f"did you mean '{close[0]}'?" if close else "use one of: " + ", ".join(choices)


# --- the shape: keys and types ---

_RECIPE_TYPE = cast(types.StructType, types.type_info(Recipe))
_OWNERS: dict[str, list[str]] = {}
for _table in _RECIPE_TYPE.fields:
    for _field in getattr(_table.type, "fields", ()):
        _OWNERS.setdefault(_field.encode_name, []).append(_table.encode_name)


def _kind_of(value: object) -> str:
    """What a TOML value is, in words."""
    words = {bool: "true/false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}
    return words.get(type(value), "a date or time")


def _shape_faults(value: object, expected: types.Type, path: KeyPath) -> Iterator[Fault]:
    if isinstance(expected, types.UnionType):
        expected = _member_for(value, expected)
    yield from _CHECKS[type(expected)](value, expected, path)


def _member_for(value: object, union: types.UnionType) -> types.Type:
    """The member of the union to judge the value by: a word for a text, the plain type for the rest."""
    members = [member for member in union.types if not isinstance(member, types.NoneType)]
    wanted = types.LiteralType if isinstance(value, str) else (types.IntType, types.FloatType)
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
    return Fault((*path, key), what, why="a misspelt key would be ignored in silence", remedy=hint)


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
        yield Fault(path, f"{path_text(path)} is absurdly large", remedy=f"stay below {_LARGEST_INTEGER}")


def _check_number(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield _wrong_type(value, path, "a number")
    elif isinstance(value, int):
        yield from _check_integer(value, _, path)
    elif not math.isfinite(value):
        yield Fault(path, f"{path_text(path)} is {value}, which is not a finite number", remedy="give a finite number")


def _check_text(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield _wrong_type(value, path, "text in quotes")


def _check_flag(value: object, _: types.Type, path: KeyPath) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield _wrong_type(value, path, "true or false")


def _check_enum(value: object, expected: types.EnumType, path: KeyPath) -> Iterator[Fault]:
    words = [str(member.value) for member in expected.cls]
    if not isinstance(value, str):
        yield _wrong_type(value, path, "one of the words " + ", ".join(words))
    elif value not in words:
        noun = _ENUM_NOUNS.get(expected.cls, "a known word")
        yield Fault(path, f"{path_text(path)}: '{value}' is not {noun}", remedy=_listing_hint(value, words))


def _check_literal(value: object, expected: types.LiteralType, path: KeyPath) -> Iterator[Fault]:
    if value not in expected.values:
        words = " or ".join(f"'{word}'" for word in expected.values)
        yield Fault(path, f"{path_text(path)}: '{value}' is not understood", remedy=f"give a whole number or {words}")


def _listing_hint(word: str, known: Iterable[str]) -> str:
    choices = list(known)
    hint = nearest_hint(word, choices)
    return f"{hint} (there are {', '.join(choices)})" if hint.startswith("did you mean") else hint


_CHECKS: dict[type[types.Type], Callable[[object, Any, KeyPath], Iterator[Fault]]] = {
    types.StructType: _check_struct,
    types.VarTupleType: _check_list,
    types.DictType: _check_dict,
    types.IntType: _check_integer,
    types.FloatType: _check_number,
    types.StrType: _check_text,
    types.BoolType: _check_flag,
    types.EnumType: _check_enum,
    types.LiteralType: _check_literal,
}


# --- the values that have rules of their own ---


@dataclass(frozen=True)
class _Rule:
    """``problem`` says what is wrong with a value, or gives an empty text; it is asked only if the type is right."""

    pattern: KeyPath
    """``*`` stands for any key or index."""
    kind: type | tuple[type, ...]
    problem: Callable[[Any], str]
    remedy: Callable[[Any], str]


def _range_rule(table: str, key: str, *, is_good: Callable[[float], bool], wanted: str) -> _Rule:
    return _Rule(
        (table, key),
        (int, float),
        lambda value: "" if is_good(value) else f"is {value}, but it must be {wanted}",
        lambda _: f"give a value that is {wanted}",
    )


def _word_rule(pattern: KeyPath, noun: str, known: tuple[str, ...]) -> _Rule:
    return _Rule(
        pattern,
        str,
        lambda value: "" if value in known else f"'{value}' is not {noun}",
        lambda value: _listing_hint(value, known),
    )


def _reference_rule(table: str, key: str) -> _Rule:
    return _Rule(
        (table, key),
        str,
        lambda value: "" if not value or _REFERENCE.fullmatch(value) else f"'{value}' does not name a function",
        lambda _: "write the name of a function of the model's source, or 'file.py:name' for one in another file",
    )


def _list_rule(table: str, key: str, noun: str) -> _Rule:
    def problem(value: list[Any]) -> str:
        words = [word for word in value if isinstance(word, str)]
        twice = [word for word in words if words.count(word) > 1]
        if not value:
            return f"names no {noun}"
        return f"names '{twice[0]}' twice" if twice else ""

    return _Rule((table, key), list, problem, lambda _: f"name each {noun} once, at least one, or leave '{key}' out")


def _shape_problem(shape: list[Any]) -> str:
    negative = [size for size in shape if isinstance(size, int) and size < 0]
    return f"has the size {negative[0]}, but a size cannot be negative" if negative else ""


def _values_problem(value: str) -> str:
    if value in _SOURCES or (_FILE_VALUE.fullmatch(value) and value != "file"):
        return ""
    return f"'{value}' is neither a source of values nor a file"


_DROP_RANGE = "at least 0 and below 1 (0.01 is one percent)"
_SOURCES = tuple(str(source) for source in ValueSource if source is not ValueSource.FILE)
_DEVICES = re.compile(r"auto|cpu|cuda(:\d+)?")
_RULES: tuple[_Rule, ...] = (
    _range_rule("goal", "max_drop", is_good=lambda drop: 0 <= drop < 1, wanted=_DROP_RANGE),
    _range_rule("goal", "max_size_mb", is_good=lambda size: size > 0, wanted="above 0"),
    _range_rule("goal", "max_latency_ratio", is_good=lambda ratio: ratio > 0, wanted="above 0 (0.5 is half the time)"),
    _range_rule("measure", "rounds", is_good=lambda rounds: rounds >= 1, wanted="at least 1"),
    _range_rule("measure", "threads", is_good=lambda threads: threads >= 1, wanted='at least 1, or "all"'),
    _range_rule("calibration", "samples", is_good=lambda samples: samples >= 1, wanted="at least 1"),
    _range_rule("capture", "time_limit_s", is_good=lambda seconds: seconds > 0, wanted="above 0 seconds"),
    _reference_rule("model", "entry"),
    _reference_rule("inputs", "tracing"),
    _reference_rule("calibration", "inputs"),
    _reference_rule("evaluate", "function"),
    _word_rule(("capture", "rungs", "*"), "a rung of the capture ladder", ALL_RUNGS),
    _word_rule(("targets", "names", "*"), "a target", ("auto", *TARGET_NAMES)),
    _list_rule("capture", "rungs", "rung"),
    _list_rule("targets", "names", "target"),
    _word_rule(("inputs", "rows", "*", "*", "dtype"), "an element type", _DTYPES),
    _Rule(("inputs", "rows", "*", "*", "shape"), list, _shape_problem, lambda _: "give sizes of 0 or more"),
    _Rule(
        ("inputs", "rows", "*", "*", "values"),
        str,
        _values_problem,
        lambda value: "write the file's path" if value == "file" else nearest_hint(value, _SOURCES) + ", or a file",
    ),
    _Rule(
        ("plan", "rules", "*", "match"),
        str,
        lambda value: rule_problem(value) or "",
        lambda _: "write for example 'module:layer1.*', 'op:aten.conv2d.default', 'type:Linear' or 'id:conv2d_3'",
    ),
    _Rule(
        ("capture", "controls", "*", "function"),
        str,
        lambda value: "" if _CONTROL.fullmatch(value) else f"'{value}' does not name a function",
        lambda _: "write 'module:name', for example 'model:get_magic_num'",
    ),
    _Rule(
        ("measure", "device"),
        str,
        lambda value: "" if _DEVICES.fullmatch(value) else f"'{value}' is not a device",
        lambda value: nearest_hint(value, ("auto", "cpu", "cuda")),
    ),
)


def _value_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    for rule in _RULES:
        for path, value in _matching(document, rule.pattern, ()):
            if not isinstance(value, rule.kind) or (isinstance(value, bool)):
                continue
            if problem := rule.problem(value):
                separator = " " if problem.startswith(("is ", "has ", "names ")) else ": "
                yield Fault(path, path_text(path) + separator + problem, remedy=rule.remedy(value))


def _matching(value: object, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    """Every value of the document whose path fits the pattern."""
    if not pattern:
        yield path, value
        return
    for key, item in _children(value):
        if pattern[0] in ("*", key):
            yield from _matching(item, pattern[1:], (*path, key))


def _children(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return list(value.items())
    return enumerate(value) if isinstance(value, list) else ()


# --- the values that must fit each other ---


def _meaning_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _source_faults(document.get("model", {}))
    inputs = document.get("inputs", {})
    if not isinstance(inputs, dict):
        return
    rows = inputs.get("rows", [])
    if rows and inputs.get("tracing"):
        yield Fault(
            ("inputs", "rows"),
            "[inputs] has both a tracing function and rows",
            why="only one of them can say what to trace with",
            remedy="remove 'tracing' or the rows",
        )
    named = [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)] if isinstance(rows, list) else []
    yield from _row_faults(named)
    yield from _dim_faults(inputs.get("dims", {}), [row for _, row in named])


def _source_faults(model: object) -> Iterator[Fault]:
    if isinstance(model, dict) and model.get("source", "") == "":
        yield Fault(
            ("model", "source") if "source" in model else ("model",),
            "The recipe names no model",
            why="[model] source is missing or empty",
            remedy='write [model] and below it source = "model.py", a path relative to the recipe',
        )


def _row_faults(rows: list[tuple[int, dict[str, Any]]]) -> Iterator[Fault]:
    for index, row in rows:
        path: KeyPath = ("inputs", "rows", index)
        if not row:
            yield Fault(path, f"{path_text(path)} is empty", remedy="give every input a shape, or remove the row")
        elif set(row) != set(rows[0][1]):
            ours, first = ", ".join(sorted(row)), ", ".join(sorted(rows[0][1])) or "no input"
            yield Fault(
                path,
                f"{path_text(path)} gives {ours}, but the first row gives {first}",
                why="every row is one call of the same model",
                remedy="give the same inputs in every row",
            )


def _dim_faults(dims: object, rows: list[dict[str, Any]]) -> Iterator[Fault]:
    for key in dims if isinstance(dims, dict) else ():
        path: KeyPath = ("inputs", "dims", key)
        parsed = _DIM_KEY.fullmatch(key)
        if parsed is None:
            yield Fault(path, f"'{key}' does not name a dimension", remedy='write "NAME.INDEX", for example "x.0"')
            continue
        name, index = parsed[1], int(parsed[2])
        if not rows or not all(rows):
            continue
        if name not in rows[0]:
            yield Fault(path, f"'{key}': no row gives an input '{name}'", remedy=nearest_hint(name, rows[0]))
            continue
        rank = _rank(rows[0][name])
        if rank is not None and index >= rank:
            yield Fault(path, f"'{key}': '{name}' has {rank} dimensions, counted from 0", remedy="give a smaller index")


def _rank(spec: object) -> int | None:
    shape = spec.get("shape") if isinstance(spec, dict) else None
    return len(shape) if isinstance(shape, list) else None
