"""The header of a safetensors file: names, element types and shapes of its tensors, and its metadata."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from ace_studio.engine.load.sniff import bad_file
from ace_studio.records.errors import AceError
from ace_studio.records.messages import StoredTensor

_LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
_TORCH_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16", "BF16": "bfloat16",
    "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4", "F6_E2M3": "float6_e2m3", "F6_E3M2": "float6_e3m2",
}  # fmt: skip
"""Element type in the format's words -> torch's name."""


def looks_like_safetensors(head: bytes) -> bool:
    """Whether the bytes begin with a plausible header length and an opening brace."""
    return len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= _LARGEST_HEADER_BYTES


def read_header(path: Path) -> tuple[list[StoredTensor], dict[str, str]]:
    """Read the tensors' descriptions (in the order of the file) and the metadata; no tensor is loaded.

    Raises: AceError(BAD_FILE) if the header is damaged or does not describe exactly the bytes that follow it.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            # Before safetensors 0.6 only the alphabetical order can be had.
            names = file.offset_keys() if hasattr(file, "offset_keys") else file.keys()
            stored = {name: file.get_slice(name) for name in names}
            return [
                StoredTensor(
                    name=name,
                    dtype=_TORCH_NAMES.get(tensor.get_dtype(), tensor.get_dtype().lower()),
                    shape=tuple(tensor.get_shape()),
                )
                for name, tensor in stored.items()
            ], file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise damaged_safetensors(path, error) from error


def damaged_safetensors(path: Path, error: Exception) -> AceError:
    """The error for a file that safetensors refuses to read, with safetensors' own reason."""
    why = str(error).removeprefix("Error while deserializing header: ")[:200]
    return bad_file(path, "is a damaged or incomplete safetensors file", why=why)
