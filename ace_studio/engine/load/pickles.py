"""Reading what a pickle would import and call, from its opcodes, without running one of them.

This serves the message and the choice of the loader; it is not the boundary. The boundary is that tensors are only
ever read with ``weights_only=True`` and that everything else needs trust, whatever this scan says.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ace_studio.engine.load.archive import DAMAGE, Archive
from ace_studio.engine.load.sniff import ZIP_MAGIC, bad_file

LARGEST_PICKLE_BYTES = 64_000_000
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_MOST_OPCODES = 3_000_000
_LEGACY_PICKLES = 4
"""A legacy torch file is a magic number, a version, facts of the machine and then the object."""

_UNKNOWN_NAME = "a name that only shows when it runs"

_TENSOR_GLOBALS = re.compile(
    r"collections\.(OrderedDict|Counter)"
    r"|torch\.(Size|Tensor|device|dtype|BoolStorage|ByteStorage|\w+Storage|per_\w+_affine)"
    r"|torch\.(u?int\d+|bfloat16|float\w*|half|double|bool|complex\d+)"
    r"|torch\._utils\._rebuild_(tensor|tensor_v2|tensor_v3|parameter|parameter_with_state|sparse_tensor|qtensor"
    r"|meta_tensor_no_storage|nested_tensor|device_tensor_from_numpy|device_tensor_from_cpu_tensor"
    r"|wrapper_subclass)"
    r"|torch\._tensor\._rebuild_from_type_v2"
    r"|torch\.nn\.parameter\.(Parameter|Buffer)"
    r"|torch\.serialization\._get_layout"
    r"|torch\.storage\.(Untyped|Typed)Storage"
    r"|_codecs\.encode"
    r"|(builtins|__builtin__)\.(set|bytearray|complex)"
)
"""What the pickle of a state dict needs; `torch.load(weights_only=True)` allows all of these."""


@dataclass(frozen=True)
class PickleScan:
    """The names that unpickling would import, ``module.name``, in order of first use."""

    globals: tuple[str, ...]

    @property
    def beyond_tensors(self) -> tuple[str, ...]:
        """Those that plain tensors do not need: unpickling would call them."""
        return tuple(name for name in self.globals if not _TENSOR_GLOBALS.fullmatch(name))


def scan_archive(archive: Archive) -> PickleScan:
    """Scan the object of a torch zip. Raises: AceError(BAD_FILE) if it has none or it is damaged."""
    info = archive.find("data.pkl")
    if info is None:
        raise bad_file(archive.path, "is a zip archive without a PyTorch object in it")
    return scan_pickles(archive.read(info, limit=LARGEST_PICKLE_BYTES), archive.path, most=1)


def scan_legacy(path: Path) -> PickleScan:
    """Scan a file that is a bare pickle, or several as old versions of torch wrote them."""
    with path.open("rb") as file:
        content = file.read(LARGEST_PICKLE_BYTES)
    is_torch = content[2:14] == b"\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")
    return scan_pickles(content, path, most=_LEGACY_PICKLES if is_torch else 1)


def scan_nested(content: bytes, path: Path) -> PickleScan:
    """Scan a torch file that lies inside another one. What cannot be read has nothing to report."""
    if not content.startswith(ZIP_MAGIC):
        return scan_pickles(content, path, most=1)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                if info.filename.endswith("data.pkl") and info.file_size <= LARGEST_PICKLE_BYTES:
                    return scan_pickles(archive.read(info), path, most=1)
    except DAMAGE:
        return PickleScan(())
    return PickleScan(())


def is_legacy_torch(head: bytes) -> bool:
    """Whether the file begins with the magic number of torch before version 1.6."""
    return head[2:14] == b"\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")


def scan_pickles(content: bytes, path: Path, *, most: int) -> PickleScan:
    """Scan up to ``most`` pickles that follow each other. Raises: AceError(BAD_FILE) if one is damaged."""
    stream = io.BytesIO(content)
    found: dict[str, None] = {}
    try:
        for _ in range(most):
            found.update(dict.fromkeys(_globals_of_one(stream)))
    except (ValueError, IndexError, KeyError, EOFError, OverflowError, AssertionError) as error:
        raise bad_file(
            path,
            "is a damaged or incomplete pickle",
            why="its instructions break off or make no sense",
            details=str(error),
        ) from error
    return PickleScan(tuple(found))


def _globals_of_one(stream: io.BytesIO) -> list[str]:
    """The globals of the next pickle, in order."""
    found: list[str] = []
    texts = _Texts()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if count > _MOST_OPCODES:
            raise ValueError("too many instructions")
        if opcode.name in ("GLOBAL", "INST"):
            found.append(str(argument).replace(" ", ".", 1))
        elif opcode.name == "STACK_GLOBAL":
            found.append(".".join(texts.recent[-2:]) if len(texts.recent) > 1 else _UNKNOWN_NAME)
        elif opcode.name in ("EXT1", "EXT2", "EXT4"):
            found.append(f"extension {argument}")
        else:
            texts.follow(opcode.name, argument, count=count)
    return found


class _Texts:
    """The texts that a pickle puts on its stack and into its memo: ``STACK_GLOBAL`` takes its names from there."""

    def __init__(self) -> None:
        self.recent: list[str] = []
        self._memo: dict[int, str] = {}

    def follow(self, name: str, argument: object, *, count: int) -> None:
        """Take note of one instruction. Raises: ValueError if it numbers a memo entry that cannot exist yet."""
        last = self.recent[-1] if self.recent else ""
        if isinstance(argument, str) and "UNICODE" in name:
            self.recent.append(argument)
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = last
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            number = int(str(argument))
            if number > count:  # readers make room up to the number: 64 GB for a bad one
                raise ValueError(f"memo entry {number} after {count} instructions")
            self._memo[number] = last
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.recent.append(self._memo.get(int(str(argument)), ""))
