"""Lists what a pickle would import and call, from its opcodes, without running one of them.

The list serves the message and the choice of the loader; it is not what keeps the user safe. Tensors are only ever read
with ``weights_only=True``, and everything else needs trust, whatever is found here.
"""

import io
import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ace_studio.engine.load.archive import DAMAGE, Archive
from ace_studio.engine.load.sniff import ZIP_MAGIC, bad_file

LARGEST_PICKLE_BYTES = 64_000_000
_LEGACY_MAGIC = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
_MOST_OPCODES = 3_000_000
_MOST_STEPS = 200_000_000
_LEGACY_PICKLES = 5
"""A file of torch before 1.6: a magic number, a version, facts of the machine, the object, the names of its numbers."""

_UNKNOWN_NAME = "a name that is only known at run time"

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
"""Globals in the pickle of a state dict; `torch.load(weights_only=True)` allows all of these."""


def unsafe_globals_of_archive(archive: Archive) -> tuple[str, ...]:
    """List the unsafe globals of the object in a torch zip.

    Raises: AceError(BAD_FILE) if there is no object in it, or the pickle is damaged.
    """
    info = archive.find("data.pkl")
    if info is None:
        raise bad_file(archive.path, "is a zip archive without a PyTorch object in it")
    return unsafe_globals(archive.read(info, limit=LARGEST_PICKLE_BYTES), archive.path)


def unsafe_globals_of_file(path: Path) -> tuple[str, ...]:
    """List the unsafe globals of a file that is a bare pickle, or several as torch before 1.6 wrote them.

    Raises: AceError(BAD_FILE) if the pickle is damaged.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_PICKLE_BYTES)
    return unsafe_globals(content, path, most=_LEGACY_PICKLES if is_legacy_torch(content) else 1)


def unsafe_globals_of_nested(content: bytes, path: Path) -> tuple[str, ...]:
    """List the unsafe globals of a torch file inside another one; empty if it cannot be read."""
    if not content.startswith(ZIP_MAGIC):
        return unsafe_globals(content, path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                if info.filename.endswith("data.pkl") and info.file_size <= LARGEST_PICKLE_BYTES:
                    return unsafe_globals(archive.read(info), path)
    except DAMAGE:
        return ()
    return ()


def is_legacy_torch(head: bytes) -> bool:
    """Whether the file begins with the magic number of torch before 1.6."""
    return head[2:14] == _LEGACY_MAGIC


def unsafe_globals(content: bytes, path: Path, *, most: int = 1) -> tuple[str, ...]:
    """List names (``module.name``) that up to ``most`` pickles in a row import and plain tensors do not need.

    Raises: AceError(BAD_FILE) if one of them is damaged.
    """
    stream = io.BytesIO(content)
    try:
        names = dict.fromkeys(name for _ in range(most) for name in _globals_of_next(stream))
    except (ValueError, IndexError, KeyError, EOFError, OverflowError, AssertionError) as error:
        raise bad_file(
            path,
            "is a damaged or incomplete pickle",
            why="its instructions break off or make no sense",
            details=str(error),
        ) from error
    return tuple(name for name in names if not _TENSOR_GLOBALS.fullmatch(name))


def _globals_of_next(stream: io.BytesIO) -> Iterator[str]:
    stack = _Stack()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if count > _MOST_OPCODES:
            raise ValueError("too many instructions")
        texts = stack.follow(opcode, argument, count=count)
        if opcode.name in ("GLOBAL", "INST"):
            yield str(argument).replace(" ", ".", 1)
        elif opcode.name == "STACK_GLOBAL":
            yield ".".join(texts) if len(texts) > 1 and all(texts) else _UNKNOWN_NAME
        elif opcode.name in ("EXT1", "EXT2", "EXT4"):
            yield f"extension {argument}"


class _Stack:
    """What a pickle puts on its stack and into its memo: the text of each value, and how many steps its hash takes.

    A tuple of two that holds the one before twice, sixty times over, takes 2 to the 60 where it is the key of a table.
    """

    def __init__(self) -> None:
        self._values: list[tuple[str, int]] = []
        self._marks: list[int] = []
        self._memo: dict[int, tuple[str, int]] = {}
        self._steps = 0

    def follow(self, opcode: pickletools.OpcodeInfo, argument: object, *, count: int) -> list[str]:
        """Apply one instruction, and return the texts that it takes. Raises: ValueError, IndexError if it cannot be."""
        name, before = opcode.name, opcode.stack_before
        if name == "MARK" or (name == "POP" and self._marks[-1:] == [len(self._values)]):
            self._marks.append(len(self._values)) if name == "MARK" else self._marks.pop()
            return []
        if "PUT" in name or name == "MEMOIZE":
            number = len(self._memo) if name == "MEMOIZE" else int(str(argument))
            if number > count:  # unpicklers allocate room up to the number: 64 GB for a bad one
                raise ValueError(f"memo entry {number} after {count} instructions")
            self._memo[number] = self._values[-1]
            return []
        is_marked = pickletools.markobject in before
        start = self._marks.pop() - before.index(pickletools.markobject) if is_marked else len(self._values)
        start = max(start if is_marked else start - len(before), 0)  # an unpickler refuses to take more than there is
        taken, self._values[start:] = self._values[start:], ()
        steps = sum(size for _, size in taken)
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise ValueError("its tuples hold each other over and over")
        made = (argument, 1) if isinstance(argument, str) and "UNICODE" in name else ("", 1 + steps * ("TUPLE" in name))
        if "GET" in name or name == "DUP":
            made = taken[0] if name == "DUP" else self._memo.get(int(str(argument)), ("", 1))
        self._values += [made] * len(opcode.stack_after)
        return [text for text, _ in taken]
