"""Reads tensors and state dicts from files as data; never runs anything in them."""

import io
import math
import os
import pickle
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ace_studio.engine.flow import repeats_without_end, tensor_leaves
from ace_studio.engine.load import sniff
from ace_studio.engine.load.archive import Archive, open_archive
from ace_studio.engine.load.pickles import unsafe_globals_of_archive, unsafe_globals_of_file
from ace_studio.engine.load.refused import newer_container
from ace_studio.engine.load.safetensors_header import damaged_safetensors, looks_like_safetensors, read_header
from ace_studio.engine.load.state_match import StateDict
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.shards import is_index, shard_files

_FREE_EXPANSION_BYTES = 64_000_000
_LARGEST_EXPANSION = 100
"""Largest ratio of a tensor's size to its stored bytes; an expanded view of one number can claim 4 TB."""
_NPY_MAGIC = b"\x93NUMPY"
_LOAD_ERRORS = (
    RuntimeError, ValueError, TypeError, LookupError, AttributeError, EOFError, ArithmeticError, AssertionError,
    ImportError, MemoryError, OSError, NameError, struct.error,
)  # fmt: skip
"""Errors that torch's reader raises for damaged files, depending on the first wrong byte."""
_FORCE_UNSAFE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def forbid_unsafe_loading() -> None:
    """Remove the environment variable that makes every ``torch.load`` of the user's code unpickle anything."""
    os.environ.pop(_FORCE_UNSAFE, None)


def read_checkpoint(path: Path) -> Any:
    """Read a ``.pt`` or a safetensors file, or all that an index names, as tensors and plain containers on the CPU.

    Raises: AceError(BAD_FILE) if it is damaged, is something else, or holds more than tensors.
    """
    head = sniff.checked_head(path)
    if is_index(path):
        return {name: tensor for shard in shard_files(path) for name, tensor in read_state_dict(shard).items()}
    if head.startswith(sniff.ZIP_MAGIC):
        archive = open_archive(path)
        names = unsafe_globals_of_archive(archive)
        archive.check_content()
        return _load_weights_only(path, names)
    if looks_like_safetensors(head):
        return _read_safetensors(path)
    if head.startswith(sniff.PICKLE_MAGIC):
        return _load_weights_only(path, unsafe_globals_of_file(path))
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    raise sniff.unknown_file(path, head)


def check_holds_tensors_only(path: Path) -> None:
    """Check that a file of weights is complete and holds only tensors, without reading them.

    Raises: AceError(BAD_FILE) if it is damaged, something else, or would run code.
    """
    head = sniff.checked_head(path)
    if is_index(path):
        for shard in shard_files(path):
            check_holds_tensors_only(shard)
        return
    if path.suffix == ".safetensors":
        read_header(path)
        return
    is_archive = head.startswith(sniff.ZIP_MAGIC)
    names = unsafe_globals_of_archive(open_archive(path)) if is_archive else unsafe_globals_of_file(path)
    if names:
        raise _more_than_tensors(path, names)


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """Read the first state dict of `read_state_dicts`.

    Raises: AceError(BAD_FILE) as `read_checkpoint`, or if there is no mapping from names to tensors in it.
    """
    return dict(read_state_dicts(path)[0].tensors)


def read_state_dicts(path: Path, *, key: str = "") -> tuple[StateDict, ...]:
    """Read every state dict in a weights file, whatever dictionaries a training script put around it.

    Args:
        path: The file.
        key: Take only state dicts below this key (``model_ema``, or dotted), or names with this prefix.

    Raises: AceError(BAD_FILE) as `read_checkpoint`, or if there is none; AceError(NOT_FOUND) if the key is not there.
    """
    found = find_state_dicts(read_checkpoint(path))
    if not found:
        what, remedy = "holds no state dict", "save it with torch.save(model.state_dict(), path)"
        raise sniff.bad_file(path, what, why="there is no table of names and tensors in it", remedy=remedy)
    return _below(path, found, key) if key else found


def _below(path: Path, found: tuple[StateDict, ...], key: str) -> tuple[StateDict, ...]:
    named = tuple(state for state in found if state.place == key or state.place.startswith(f"{key}."))
    if named:
        return named
    prefix = key.rstrip(".") + "."
    for state in found:
        below = {name: tensor for name, tensor in state.tensors.items() if name.startswith(prefix)}
        if below:
            return (StateDict(below, state.place),)
    heads = {name.partition(".")[0] for state in found for name in state.tensors}
    known = [*(state.place for state in found if state.place), *sorted(heads)]
    raise AceError.of(
        ErrorCode.NOT_FOUND,
        f"{path.name} has no weights under '{key}'",
        why="it has " + ", ".join(known[:12]) + (" ..." if len(known) > 12 else ""),
        remedy=f"name one of them: '{path.name}:{known[0]}'",
        where=str(path),
    )


WRAPPINGS = (
    "state_dict", "model_state_dict", "model", "module", "net", "network", "weights", "params", "params_ema",
    "generator", "ema", "model_ema", "ema_state_dict", "state_dict_ema", "ema_model", "model_ema_state_dict", "shadow",
)  # fmt: skip
"""Keys under which training scripts keep the weights, the most specific first."""
_NOT_WEIGHTS = ("optimizer", "optim", "lr_scheduler", "scheduler", "scaler", "callbacks", "loops")


def find_state_dicts(value: object, *, depth: int = 3, place: str = "") -> tuple[StateDict, ...]:
    """Find every table of names and tensors: below the usual keys first, then below others, then mixed with others."""
    if not isinstance(value, Mapping) or not value or depth == 0:
        return ()
    is_table = all(isinstance(name, str) for name in value)
    if is_table and all(isinstance(item, Tensor) for item in value.values()):
        return (StateDict(dict(value), place),)
    others = [key for key in value if isinstance(key, str) and key not in WRAPPINGS and key not in _NOT_WEIGHTS]
    found: list[StateDict] = []
    for key in (*WRAPPINGS, *others):
        found += find_state_dicts(value.get(key), depth=depth - 1, place=f"{place}.{key}" if place else key)
    tensors = {name: item for name, item in value.items() if isinstance(item, Tensor)}
    return (*found, StateDict(tensors, place)) if is_table and tensors else tuple(found)


def read_tensor(path: Path, *, name: str = "") -> Tensor:
    """Read one tensor of a ``.npy``, ``.npz``, ``.safetensors`` or ``.pt`` file.

    Args:
        path: The file. ``FILE:NAME`` picks one tensor of several, as ``name`` does.
        name: Which tensor, if the file holds several; empty if it holds one.

    Raises: AceError(NOT_FOUND) if there is no such file or name; AceError(BAD_FILE) if it is damaged or not an array.
    """
    if not name and not path.exists() and ":" in path.name:
        stem, _, name = path.name.rpartition(":")
        path = path.with_name(stem)
    head = sniff.checked_head(path)
    if head.startswith(_NPY_MAGIC):
        with path.open("rb") as file:
            return _read_npy(path, file, path.stat().st_size)
    if head.startswith(sniff.ZIP_MAGIC) and "data.pkl" not in (archive := open_archive(path)).inner_names:
        return _read_npz(archive, name)
    content = read_checkpoint(path)
    if isinstance(content, Tensor):
        return content
    tensors = _tensors_in(content)
    return tensors[_pick(path, tensors, name)]


def _tensors_in(content: Any) -> dict[str, Tensor]:
    items = content.items() if isinstance(content, Mapping) else ()
    return {str(key): item for key, item in items if isinstance(item, Tensor)}


def read_named_content(path: Path) -> Mapping[str, Any]:
    """What a file of arrays holds, by name; a list or a lone tensor of a ``.pt`` file under an empty name.

    Raises: AceError(NOT_FOUND or BAD_FILE), as `read_arrays` and `read_checkpoint` do.
    """
    if path.suffix != ".pt":
        return read_arrays(path)
    content = read_checkpoint(path)
    if not isinstance(content, Mapping):
        return {"": content}
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor | list | tuple)}


def read_arrays(path: Path) -> dict[str, Tensor]:
    """Read every named tensor of a ``.npz``, ``.safetensors`` or ``.pt`` file.

    Raises: AceError(NOT_FOUND) if there is no such file; AceError(BAD_FILE) if it is damaged or holds no named tensors.
    """
    head = sniff.checked_head(path)
    if head.startswith(sniff.ZIP_MAGIC) and "data.pkl" not in (archive := open_archive(path)).inner_names:
        names = [member.removesuffix(".npy") for member in archive.members if member.endswith(".npy")]
        return {name: _read_npz(archive, name) for name in names}
    found = _tensors_in(read_checkpoint(path))
    if not found:
        raise sniff.bad_file(path, "holds no named tensors", remedy="save a dictionary of tensors, or use numpy.savez")
    return found


def _pick(path: Path, known: Iterable[str], name: str) -> str:
    """The requested name, or the only one."""
    names = list(known)
    if name in names:
        return name
    if len(names) == 1 and not name:
        return names[0]
    if not names:
        raise sniff.bad_file(path, "holds no tensor", remedy="save one with numpy.save or torch.save")
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    raise AceError.of(
        ErrorCode.NOT_FOUND,
        f"{path.name} has no tensor '{name}'" if name else f"{path.name} holds {len(names)} tensors",
        why=f"it holds {shown}",
        remedy=f"name one of them: '{path.name}:{names[0]}'",
        where=str(path),
    )


def _read_npz(archive: Archive, name: str) -> Tensor:
    arrays = {member.removesuffix(".npy"): info for member, info in archive.members.items() if member.endswith(".npy")}
    info = arrays[_pick(archive.path, arrays, name)]
    content = archive.read(info, limit=info.file_size)
    return _read_npy(archive.path, io.BytesIO(content), len(content))


def _read_npy(path: Path, file: IO[bytes], length: int) -> Tensor:
    """Read one array whose header and length agree. Objects are refused: they would be pickles."""
    try:
        version = np.lib.format.read_magic(file)
        formats = np.lib.format
        if version not in {(1, 0), (2, 0), (3, 0)}:
            form = f"version {version[0]}.{version[1]} of numpy's file format"
            raise sniff.newer_format(path, form, "versions 1 to 3 are read here", "numpy")
        read_header_of = formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0
        shape, is_fortran, dtype = read_header_of(file)
        if dtype.hasobject:
            why, remedy = "reading them would run code", "save an array of numbers"
            raise sniff.bad_file(path, "holds Python objects, not numbers", why=why, remedy=remedy)
        needed, present = math.prod(shape) * dtype.itemsize, length - file.tell()
        if needed != present:
            why, remedy = f"its header speaks of {needed} bytes, but there are {present}", "save it again"
            raise sniff.bad_file(path, "is a damaged or incomplete numpy array", why=why, remedy=remedy)
        _check_memory(path, needed)
        array = np.frombuffer(file.read(needed), dtype=dtype).reshape(shape, order="F" if is_fortran else "C")
        return torch.from_numpy(np.array(array, dtype=dtype.newbyteorder("="), order="C"))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise sniff.bad_file(
            path, "cannot be read as an array of numbers", why=_first_line(error), remedy="save it with numpy.save"
        ) from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    _check_memory(path, sniff.size_of(path))
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, *_LOAD_ERRORS) as error:
        raise damaged_safetensors(path, error) from error
    return tensors


def _load_weights_only(path: Path, names: tuple[str, ...]) -> Any:
    """``torch.load`` with its own error text replaced, which would advise to run the file's code."""
    if names:
        raise _more_than_tensors(path, names)
    _check_memory(path, sniff.size_of(path))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251 - the one place that may
    except pickle.UnpicklingError as error:
        raise _more_than_tensors(path, (), details=str(error)) from error
    except _LOAD_ERRORS as error:
        raise newer_container(path, str(error)) or sniff.bad_file(
            path,
            "is damaged: torch cannot read its tensors",
            why="the file does not hold what its table of contents says",
            details=str(error),
        ) from error
    _reject_inflated(path, content)
    return content


def _more_than_tensors(path: Path, names: tuple[str, ...], *, details: str = "") -> AceError:
    shown = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return sniff.bad_file(
        path,
        "holds more than tensors",
        why=f"reading it would import and call {shown}" if shown else "it holds Python objects that are not plain data",
        remedy="where it was made, save the tensors alone: torch.save(model.state_dict(), path)",
        details=details,
    )


def _reject_inflated(path: Path, content: Any) -> None:
    """Refuse tensors far larger than their stored bytes; copying one would end the process."""
    endless = sniff.bad_file(
        path,
        "holds tables that contain themselves or each other, or nest without end",
        why="no list of its tensors can be made",
        remedy="where it was made, save the tensors alone: torch.save(model.state_dict(), path)",
    )
    if repeats_without_end(content):
        raise endless
    try:
        tensors = tensor_leaves(content)
    except RecursionError as error:
        raise endless from error
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            continue
        claimed, stored = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
        if claimed > _FREE_EXPANSION_BYTES + _LARGEST_EXPANSION * stored:
            why = f"one of shape {tuple(tensor.shape)} claims {claimed} bytes, with {stored} stored"
            raise sniff.bad_file(
                path, "holds a tensor with a false size", why=why, remedy="save a copy made by .clone()"
            )


def _check_memory(path: Path, needed: int) -> None:
    available = psutil.virtual_memory().available
    if needed > available:
        raise AceError.of(
            ErrorCode.OUT_OF_MEMORY,
            f"{path.name} does not fit into memory",
            why=f"it needs {needed} bytes, and {available} are free",
            remedy="close other programs, or use a machine with more memory",
            where=str(path),
        )


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:200]
