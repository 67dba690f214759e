"""Keys and values as TOML writes them."""

import json
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any

import msgspec

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def changed_fields(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Names (as in the file) and values of the fields that differ from their defaults."""
    for name, key, default in _defaults(type(struct)):
        value = getattr(struct, name)
        if value != default or default is msgspec.NODEFAULT:
            yield key, value


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Name, name in the file and default of every field. Msgspec takes long to list them."""
    return tuple(
        (
            field.name,
            field.encode_name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(kind)
    )


def pair_text(key: str, value: object) -> str:
    """``key = value``."""
    return f"{key_text(key)} = {value_text(value)}"


def key_text(key: str) -> str:
    """A key, in quotes where it needs them."""
    return key if _BARE_KEY.fullmatch(key) else _quoted(key)


def value_text(value: object) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return _quoted(str(value.value))
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(value_text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(pair_text(key, item) for key, item in value.items()) + " }"
    if isinstance(value, msgspec.Struct):
        return value_text(dict(changed_fields(value)))
    return repr(value)


def _quoted(text: str) -> str:
    """A TOML basic string. JSON's escapes are TOML's, except that TOML wants DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
