"""Caught inputs on disk: tensors in a safetensors file, and beside it a JSON file that says how they were passed.

Reading them runs nothing: a class is put together again only if the user's own code has been loaded already.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections import OrderedDict, UserDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import torch
from torch import Tensor

from ace_studio.engine.examples.containers import held_items
from ace_studio.engine.flow import Example
from ace_studio.records.errors import AceError, ErrorCode

_FORMAT = 1
MAX_JSON_BYTES = 50_000_000
_DEEPEST = 30
"""Containers inside of containers; a model is not called with more."""
Scalar = bool | int | float | str | None


class CaughtValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One value of a call. Exactly one of the first fields says what it is; with none of them it is a plain value."""

    tensor: str | None = None
    """Its name in the safetensors file."""
    items: list[CaughtValue] | None = None
    keys: list[Scalar] | None = None
    """Names of the items, of a dictionary or an object; without them it is a list."""
    is_tuple: bool = False
    kind: str = ""
    """``module:class`` of the object that holds the items."""
    dtype: str = ""
    """A torch.dtype, by name."""
    number: str = ""
    """A number that JSON cannot write: nan, inf, -inf."""
    value: Scalar = None


class CaughtCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call."""

    args: list[CaughtValue]
    kwargs: dict[str, CaughtValue] = {}


class CaughtInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``inputs.json``."""

    format: int = _FORMAT
    module: str = ""
    """Class of the module that was called."""
    tensors: str = "inputs.safetensors"
    """Name of the file beside it."""
    calls: list[CaughtCall]


@dataclass(frozen=True)
class CaughtFiles:
    """Where caught inputs are."""

    structure: Path
    tensors: Path

    @classmethod
    def at(cls, path: Path) -> CaughtFiles:
        """From a folder, or from either of the two files."""
        if path.suffix in (".json", ".safetensors"):
            return cls(path.with_suffix(".json"), path.with_suffix(".safetensors"))
        return cls(path / "inputs.json", path / "inputs.safetensors")


class NotStorableError(Exception):
    """A value that no file can hold; the text says which."""


class CallWriter:
    """Takes one call apart into a structure and named tensors, which are copies on the CPU."""

    def __init__(self, prefix: str, *, optional: Collection[str] = ()) -> None:
        """Arguments by keyword that are ``optional`` are left out of the call if no file can hold them."""
        self._prefix = prefix
        self._optional = optional
        self.tensors: dict[str, Tensor] = {}
        self.left_out: list[str] = []
        """Why, for each argument that was left out."""

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CaughtCall:
        """Raises: NotStorableError for what is neither a tensor, nor a plain value, nor a container of such."""
        named = {}
        for name, value in kwargs.items():
            before = dict(self.tensors)
            try:
                named[name] = self._part(value, name, 0)
            except NotStorableError as error:
                if name not in self._optional:
                    raise
                self.tensors = before
                self.left_out.append(str(error))
        return CaughtCall(args=[self._part(value, str(index), 0) for index, value in enumerate(args)], kwargs=named)

    def _part(self, value: Any, name: str, depth: int) -> CaughtValue:
        if depth > _DEEPEST:
            raise NotStorableError(f"'{name}' is nested too deeply")
        if isinstance(value, Tensor):
            return self._tensor(value, name)
        if isinstance(value, torch.dtype):
            return CaughtValue(dtype=str(value).removeprefix("torch."))
        if isinstance(value, float) and not math.isfinite(value):
            return CaughtValue(number=str(value))
        if value is None or type(value) in (bool, int, float, str):
            return CaughtValue(value=value)
        if type(value) in (list, tuple, torch.Size):
            items = [self._part(item, f"{name}.{index}", depth + 1) for index, item in enumerate(value)]
            return CaughtValue(items=items, is_tuple=type(value) is not list)
        return self._container(value, name, depth)

    def _container(self, value: Any, name: str, depth: int) -> CaughtValue:
        is_named_tuple = isinstance(value, tuple) and hasattr(value, "_asdict")
        held = value._asdict() if is_named_tuple else held_items(value)
        if held is None or not all(key is None or type(key) in (bool, int, float, str) for key in held):
            raise NotStorableError(f"'{name}' is of the class {type(value).__qualname__}")
        items = [self._part(item, f"{name}.{key}", depth + 1) for key, item in held.items()]
        kind = "" if type(value) is dict else f"{type(value).__module__}:{type(value).__qualname__}"
        return CaughtValue(items=items, keys=list(held), is_tuple=is_named_tuple, kind=kind)

    def _tensor(self, value: Tensor, name: str) -> CaughtValue:
        if value.layout is not torch.strided or value.is_quantized or value.is_meta or hasattr(value, "fake_mode"):
            raise NotStorableError(f"'{name}' is a tensor of a kind that no file holds ({value.layout})")
        path = f"{self._prefix}.{name}"
        plain = value.detach().to("cpu", copy=True).contiguous()
        self.tensors[path] = plain.as_subclass(Tensor) if type(plain) is not Tensor else plain
        return CaughtValue(tensor=path)


def read_caught(path: Path, *, read_tensors: Callable[[Path], Mapping[str, Any]]) -> list[Example]:
    """The examples that ``ace-studio catch`` stored.

    Args:
        path: ``inputs.json``, or the folder that it is in.
        read_tensors: Reads the named tensors of a safetensors file.

    Raises: AceError(NOT_FOUND) if there are none; AceError(BAD_FILE) if they are damaged or of a newer format.
    """
    stored = read_structure(path)
    files = CaughtFiles.at(path)
    tensors = read_tensors(files.structure.with_name(Path(stored.tensors).name))
    try:
        return [
            Example(
                args=tuple(_value(part, tensors) for part in call.args),
                kwargs={name: _value(part, tensors) for name, part in call.kwargs.items()},
            )
            for call in stored.calls
        ]
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(files.structure, f"{type(error).__name__}: {error}") from error


def read_structure(path: Path) -> CaughtInputs:
    """The JSON alone. Raises: AceError(NOT_FOUND or BAD_FILE)."""
    file = CaughtFiles.at(path).structure
    if not file.is_file():
        raise AceError.of(
            ErrorCode.NOT_FOUND,
            f"There are no caught inputs at {path}",
            remedy="Name the folder that was given to `ace-studio catch --out`, or the inputs.json in it.",
            where="caught",
        )
    if file.stat().st_size > MAX_JSON_BYTES:
        raise _damaged(file, "it is far too large")
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=CaughtInputs)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(file, str(error)) from error
    if stored.format > _FORMAT:
        raise _damaged(file, f"it has format {stored.format}, and this ACE Studio reads up to {_FORMAT}")
    return stored


def _damaged(file: Path, why: str) -> AceError:
    return AceError.of(
        ErrorCode.BAD_FILE,
        f"{file.name} does not hold caught inputs",
        why=why,
        remedy="Catch them again.",
        where=str(file),
    )


def _value(part: CaughtValue, tensors: Mapping[str, Any]) -> Any:
    if part.tensor is not None:
        return tensors[part.tensor].clone()
    if part.dtype:
        found = getattr(torch, part.dtype, None)
        if not isinstance(found, torch.dtype):
            raise ValueError(f"{part.dtype} is no element type")
        return found
    if part.number:
        return float(part.number)
    if part.items is None:
        return part.value
    items = [_value(item, tensors) for item in part.items]
    if part.keys is None:
        return tuple(items) if part.is_tuple else items
    return _object(part, dict(zip(part.keys, items, strict=True)))


def _object(part: CaughtValue, held: dict[Any, Any]) -> Any:
    """An object of its class if that has been loaded, else a container that holds the same values by the same names."""
    found = _loaded_class(part.kind)
    made = _made(found, held) if found is not None else None
    if made is not None:
        return made
    if part.is_tuple:
        return tuple(held.values())
    is_mapping = not part.kind or (found is not None and issubclass(found, Mapping))
    is_named = all(isinstance(key, str) and key.isidentifier() for key in held)
    return held if is_mapping or not is_named else SimpleNamespace(**held)


def _loaded_class(kind: str) -> type | None:
    module, _, name = kind.partition(":")
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = vars(found).get(step) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None


def _made(cls: type, held: dict[Any, Any]) -> Any:
    """An object of the class, without running code of the class: its name comes from a file."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return tuple.__new__(cls, held.values())
    is_record = dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__")
    made: Any = None
    if issubclass(cls, OrderedDict):
        made = OrderedDict.__new__(cls)
        for key, item in held.items():
            if item is not None or not is_record:
                OrderedDict.__setitem__(made, key, item)
    elif issubclass(cls, dict):
        made = dict.__new__(cls)
        dict.update(made, held)
    elif issubclass(cls, UserDict):
        made = object.__new__(cls)
        object.__setattr__(made, "data", dict(held))
    elif is_record:
        made = object.__new__(cls)
    if is_record and made is not None:
        for name, item in held.items():
            object.__setattr__(made, name, item)
    return made
