"""Lists the tensors of a torch file (names, types, shapes) from its pickle without running anything in it.

An unpickler replaces every global by an inert record, so that a "call" of it only stores the arguments. No storage is
read.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ace_studio.engine.load.archive import open_archive
from ace_studio.engine.load.pickles import LARGEST_PICKLE_BYTES
from ace_studio.engine.load.safetensors_header import looks_like_safetensors, read_header
from ace_studio.engine.load.sniff import ZIP_MAGIC, read_head
from ace_studio.records.messages import StoredTensor
from ace_studio.records.shards import is_index, shard_files

_DTYPE_OF_STORAGE = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_MOST_TENSORS = 100_000
_MOST_STEPS = 1_000_000
"""Items that are looked at: tables may share members, and then they are many more than the file is long."""
_DEEPEST = 4
_SHAPE_ARGUMENT = 2
"""Index of the size among the arguments of torch's functions that rebuild a strided tensor."""
_DTYPE_ARGUMENT = 6


class _Inert:
    """Stands for a global of a pickle, and for the result of calling it; stores the arguments and does nothing."""

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.items: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> _Inert:
        return _Inert(self.name, arguments)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def __setstate__(self, state: Any) -> None:
        """State is dropped."""

    def append(self, item: Any) -> None:
        """Items of list-like things are dropped."""


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        return _Inert(f"{module_name}.{global_name}")

    def persistent_load(self, reference: Any, /) -> Any:
        return _Inert("storage", reference if isinstance(reference, tuple) else ())


def list_tensors_of_file(path: Path) -> tuple[StoredTensor, ...]:
    """List the tensors of a file of weights, or of all that an index names; empty for torch's format before 1.6.

    Raises: AceError(BAD_FILE) if it is damaged.
    """
    if is_index(path):
        return tuple(tensor for shard in shard_files(path) for tensor in list_tensors_of_file(shard))
    head = read_head(path)
    if not head.startswith(ZIP_MAGIC):
        is_safe = looks_like_safetensors(head) or path.suffix == ".safetensors"
        return tuple(read_header(path)[0]) if is_safe else ()
    archive = open_archive(path)
    stored = archive.find("data.pkl")
    return list_tensors(archive.read(stored, limit=LARGEST_PICKLE_BYTES)) if stored else ()


def list_tensors(content: bytes) -> tuple[StoredTensor, ...]:
    """List the tensors in the pickle of a torch zip, with dotted names; empty if there are none or it cannot be read.

    The content must have passed `pickles.unsafe_globals`, which refuses impossible lengths and memo numbers.

    Raises: nothing; a damaged pickle gives an empty list, because the list is only shown.
    """
    try:
        value = _InertUnpickler(io.BytesIO(content)).load()
        steps = islice(_walk(value, "", _DEEPEST), _MOST_STEPS)
        return tuple(islice((one for one in steps if one is not None), _MOST_TENSORS))
    except (pickle.UnpicklingError, *_FAILURES):
        return ()


_FAILURES = (ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError, MemoryError, RecursionError)


def _walk(value: Any, name: str, depth: int) -> Iterator[StoredTensor | None]:
    """The tensors, and None for each item that is none."""
    found = _tensor(value, name) if isinstance(value, _Inert) else None
    yield found
    if isinstance(value, _Inert):
        if found:
            return
        value = value.items
    if isinstance(value, Mapping) and depth:
        for key, item in value.items():
            yield from _walk(item, f"{name}.{key}" if name else str(key), depth - 1)


def _tensor(record: _Inert, name: str) -> StoredTensor | None:
    if record.name.endswith("._rebuild_parameter") and record.arguments:
        inner = record.arguments[0]
        return _tensor(inner, name) if isinstance(inner, _Inert) else None
    is_strided = record.name in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
    if not is_strided or len(record.arguments) <= _SHAPE_ARGUMENT:
        return None
    shape = record.arguments[_SHAPE_ARGUMENT]
    if not isinstance(shape, tuple) or not all(type(size) is int for size in shape):
        return None
    return StoredTensor(name=name, dtype=_dtype(record.arguments), shape=shape)


def _dtype(arguments: tuple[Any, ...]) -> str:
    """The element type: named outright by version 3, else by the class of the storage."""
    named = arguments[_DTYPE_ARGUMENT] if len(arguments) > _DTYPE_ARGUMENT else None
    if isinstance(named, _Inert) and named.name.startswith("torch."):
        return named.name.removeprefix("torch.")
    storage = arguments[0]
    if isinstance(storage, _Inert) and len(storage.arguments) > 1 and isinstance(storage.arguments[1], _Inert):
        return _DTYPE_OF_STORAGE.get(storage.arguments[1].name.rpartition(".")[2], "")
    return ""
