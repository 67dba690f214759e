"""Opens zip files after checks for truncation, damage, duplicate members and false sizes.

torch reads zips with its own code, which neither checks CRCs nor compares declared sizes with the file.
"""

import lzma
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ace_studio.engine.load.sniff import bad_file, size_of
from ace_studio.records.errors import AceError

_LARGEST_EXPANSION = 50
"""A compressed tensor file grows by less; deflate itself can do 1032."""
_FREE_EXPANSION_BYTES = 64_000_000
_MOST_MEMBERS = 200_000


@dataclass(frozen=True)
class Archive:
    """The members of a zip whose listed sizes are consistent."""

    path: Path
    members: dict[str, zipfile.ZipInfo]

    @property
    def inner_names(self) -> frozenset[str]:
        """Member names without the folder that torch puts around everything."""
        return frozenset(name.partition("/")[2] or name for name in self.members)

    def find(self, inner_name: str) -> zipfile.ZipInfo | None:
        """The member of that name, with or without the outer folder."""
        for name, info in self.members.items():
            if name == inner_name or name.partition("/")[2] == inner_name:
                return info
        return None

    def read(self, info: zipfile.ZipInfo, *, limit: int) -> bytes:
        """Content of a member, its CRC checked. Raises: AceError(BAD_FILE) if damaged or longer than the limit."""
        if info.file_size > limit:
            raise bad_file(self.path, f"holds a part {info.filename} of {info.file_size} bytes, which cannot be right")
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(info)
        except DAMAGE as error:
            raise _damaged(self.path, info.filename, error) from error

    def check_content(self) -> None:
        """Read everything and compare the CRCs. Raises: AceError(BAD_FILE) naming the damaged part."""
        with zipfile.ZipFile(self.path) as archive:
            for name, info in self.members.items():
                try:
                    with archive.open(info) as member:
                        while member.read(1 << 20):
                            pass
                except DAMAGE as error:
                    raise _damaged(self.path, name, error) from error


DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, OverflowError,
    lzma.LZMAError,
)  # fmt: skip
"""What zipfile raises for damaged members, encryption and unknown compression methods."""


def open_archive(path: Path) -> Archive:
    """List a zip and check that its listing is consistent.

    Raises: AceError(BAD_FILE) if it is cut short, has two members of one name, or declares more than it holds.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
        if infos and min(info.header_offset for info in infos) > 0:
            raise zipfile.BadZipFile("the table of contents is that of an archive inside of it")
    except DAMAGE as error:
        raise bad_file(
            path,
            "is a damaged or incomplete zip archive",
            why="it begins like one, but its table of contents is missing or wrong; a download or save was cut short",
            details=str(error),
        ) from error
    if problem := _listing_problem(infos, size_of(path)):
        raise bad_file(path, "is not an honest zip archive", why=problem, remedy="do not use it; get it from its maker")
    return Archive(path, {info.filename: info for info in infos})


def _listing_problem(infos: list[zipfile.ZipInfo], length: int) -> str:
    """Why the listing cannot be true; empty if it can."""
    if len(infos) > _MOST_MEMBERS:
        return f"it lists {len(infos)} parts"
    name, times = Counter(info.filename for info in infos).most_common(1)[0] if infos else ("", 0)
    if times > 1:
        return f"it has {times} parts named {name}, and readers disagree on which one counts"
    stored, expanded = sum(info.compress_size for info in infos), sum(info.file_size for info in infos)
    if stored > length:
        return f"its parts would take {stored} bytes, but the file has {length}"
    if expanded > _LARGEST_EXPANSION * length + _FREE_EXPANSION_BYTES:
        return f"it would unpack to {expanded} bytes from {length}"
    encrypted = [info.filename for info in infos if info.flag_bits & 1]
    return f"{encrypted[0]} is encrypted" if encrypted else ""


def _damaged(path: Path, member: str, error: Exception) -> AceError:
    return bad_file(
        path,
        f"is damaged: {member or 'a part'} does not have the content its checksum says",
        why="some bytes changed after it was saved, or a save broke off",
        details=str(error),
    )
