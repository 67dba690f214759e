"""The header of a safetensors file: names, types and shapes, checked against the length of the file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ace_studio.engine.load.sniff import bad_file
from ace_studio.records.messages import StoredTensor

_LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
DTYPES: dict[str, tuple[str, float]] = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "U16": ("uint16", 2), "I16": ("int16", 2),
    "F16": ("float16", 2), "BF16": ("bfloat16", 2), "U32": ("uint32", 4), "I32": ("int32", 4), "F32": ("float32", 4),
    "U64": ("uint64", 8), "I64": ("int64", 8), "F64": ("float64", 8), "C64": ("complex64", 8),
    "F8_E4M3": ("float8_e4m3fn", 1), "F8_E5M2": ("float8_e5m2", 1), "F8_E8M0": ("float8_e8m0fnu", 1),
    "F4": ("float4", 0.5), "F6_E2M3": ("float6_e2m3", 0.75), "F6_E3M2": ("float6_e3m2", 0.75),
}  # fmt: skip
"""The format's word -> torch's name and bytes per element."""


def looks_like_safetensors(head: bytes) -> bool:
    """Whether the bytes begin with a plausible header length and an opening brace."""
    return len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= _LARGEST_HEADER_BYTES


def read_header(path: Path) -> tuple[list[StoredTensor], dict[str, str]]:
    """The tensors (in the order of the file) and the metadata.

    Raises: AceError(BAD_FILE) if the header is damaged, or speaks of other bytes than the file has.
    """
    length = path.stat().st_size
    with path.open("rb") as file:
        declared = int.from_bytes(file.read(8), "little")
        if declared > min(_LARGEST_HEADER_BYTES, length - 8) or length < 10:
            raise _damaged(path, f"it declares a header of {declared} bytes, but the file has {length}")
        raw = file.read(declared)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "its header is not the JSON that it must be") from error
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a table")
    metadata = header.pop("__metadata__", {})
    tensors = [_tensor(path, name, entry, data_bytes=length - 8 - declared) for name, entry in header.items()]
    ends = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if ends != length - 8 - declared:
        raise _damaged(path, f"its tensors end at byte {ends} of the data, but there are {length - 8 - declared}")
    words = metadata.items() if isinstance(metadata, dict) else ()
    return tensors, {str(key): str(value) for key, value in words}


def _tensor(path: Path, name: str, entry: Any, *, data_bytes: int) -> StoredTensor:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        word, width = DTYPES[dtype]
        is_sound = all(type(number) is int and number >= 0 for number in (*shape, start, end))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its header does not describe '{name}' properly") from error
    if not is_sound or not start <= end <= data_bytes or end - start != math.ceil(math.prod(shape) * width):
        raise _damaged(path, f"'{name}' does not lie where its header says")
    return StoredTensor(name=name, dtype=word, shape=tuple(shape))


def _damaged(path: Path, why: str) -> Exception:
    return bad_file(path, "is a damaged or incomplete safetensors file", why=why)
