"""Reads a ``.tar.gz`` that somebody else made, and unpacks it into an empty folder, by rules of its own.

tarfile's filters ask the system where a path leads, and the system gives up on paths that are too long. Here names are
checked as text, folders are opened one in the other by their descriptors and never through a link, a file is never
opened that is there already, and links are made last, when nothing is written any more. Standard library only.
"""

import os
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Self

MOST_MEMBERS = 400_000
MOST_NAME_BYTES = 255
MOST_PATH_BYTES = 600
"""Of a path inside of the archive. The shortest limit of a system for a whole path is 1024."""
MOST_DEPTH = 40
MOST_SHOWN_BYTES = 4_000_000
_MOST_HEADER_BYTES = 1 << 16
_BLOCK = 512
_READ_BYTES = 1 << 20
_STRANGE = re.compile(r'[\x00-\x1f\x7f\\]|[:*?"<>|]|[ .]$' if os.name == "nt" else r"[\x00-\x1f\x7f\\]")
"""In names: what steers a terminal, and what the system reads as something else."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
BY_DESCRIPTOR = {os.open, os.mkdir, os.symlink, os.link} <= os.supports_dir_fd
"""Whether names are looked up in a folder's descriptor. Elsewhere (Windows) paths are used, and links are refused."""

Parts = tuple[str, ...]
"""A path inside of the archive."""


class ArchiveError(ValueError):
    """The archive is damaged, or holds what is not unpacked; the text says what."""


class Kind(StrEnum):
    """What a member is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    HARD_LINK = "hard link"


_KINDS = {
    tarfile.REGTYPE: Kind.FILE,
    tarfile.AREGTYPE: Kind.FILE,
    tarfile.DIRTYPE: Kind.FOLDER,
    tarfile.SYMTYPE: Kind.LINK,
    tarfile.LNKTYPE: Kind.HARD_LINK,
}
_LONG_NAMES = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}


@dataclass(frozen=True)
class Member:
    """One file, folder or link."""

    path: Parts
    kind: Kind
    size: int = 0
    is_program: bool = False
    """Whether its owner may execute it; no other permission is taken over."""
    target: Parts = ()
    """What a link leads to, inside of the archive."""
    link: str = ""
    """The text of a symbolic link."""


@dataclass
class Contents:
    """What was read: the members by their paths, and a file that was asked for."""

    top: str = ""
    """The folder that everything is in."""
    members: dict[Parts, Member] = field(default_factory=dict)
    unpacked_bytes: int = 0
    """Of the archive without compression."""
    shown: bytes = b""

    def is_file(self, path: Parts) -> bool:
        """Whether a path is a file, or leads to one."""
        return self._end(path).kind is Kind.FILE

    def files(self, *, without: str) -> tuple[int, int]:
        """Number and bytes of the files, links to files among them, without one that lies in the top folder."""
        ends = [self._end(path) for path in self.members if path != (self.top, without)]
        sizes = [one.size for one in ends if one.kind is Kind.FILE]
        return len(sizes), sum(sizes)

    def _end(self, path: Parts) -> Member:
        found = self.members.get(path, Member(path, Kind.FOLDER))
        return self.members.get(found.target, found)

    def add(self, member: Member) -> None:
        """Take a member. Raises: ArchiveError if another one has its path, or lies where it would be a folder."""
        self.top = self.top or member.path[0]
        if member.path[0] != self.top:
            raise ArchiveError(f"{_named(member.path)} lies beside the folder {self.top}")
        for depth in range(len(member.path) - 1, 0, -1):
            parent = member.path[:depth]
            if (around := self.members.get(parent)) is None:
                self.members[parent] = Member(parent, Kind.FOLDER)
            elif around.kind is not Kind.FOLDER:
                raise ArchiveError(f"{_named(member.path)} lies below a file or link")
            else:
                break
        before = self.members.setdefault(member.path, member)
        if before is not member and {before.kind, member.kind} != {Kind.FOLDER}:
            raise ArchiveError(f"{_named(member.path)} is in it twice")
        if len(self.members) > MOST_MEMBERS:
            raise ArchiveError(f"it has more than {MOST_MEMBERS} members")

    def links(self) -> list[Member]:
        """The links. Raises: ArchiveError if one does not lead straight to a file or folder of the archive."""
        links = [one for one in self.members.values() if one.kind in (Kind.LINK, Kind.HARD_LINK)]
        for one in links:
            end = self.members.get(one.target)
            wanted = (Kind.FILE,) if one.kind is Kind.HARD_LINK else (Kind.FILE, Kind.FOLDER)
            if end is None or end.kind not in wanted:
                raise ArchiveError(f"the {one.kind} {_named(one.path)} does not lead straight to a file of the archive")
        if links and not BY_DESCRIPTOR:
            raise ArchiveError(f"{_named(links[0].path)} is a link, and this system cannot make links safely")
        return links


def unpack(
    plain: IO[bytes], into: Path | None, *, most_bytes: int, show: str = "", accept: Callable[[str], object] = str
) -> Contents:
    """Read an archive to its end, and write what is in it into an empty folder.

    Args:
        plain: The archive without compression.
        into: The folder; None writes nothing, and refuses the same archives.
        most_bytes: More without compression is refused before it is written.
        show: A file of the top folder that is returned too.
        accept: Takes the name of the top folder, before anything else is read.

    Raises: ArchiveError; what ``plain`` and ``accept`` raise; OSError, also if something is in the folder already.
    """
    stream, contents = _Counted(plain, most_bytes), Contents()
    with _Tree(into) as tree:
        for member in _members(stream):
            if not contents.top:
                accept(member.path[0])
            contents.add(member)
            blocks = stream.blocks(member.size)
            if show and member.path == (contents.top, show) and member.size <= MOST_SHOWN_BYTES:
                contents.shown = b"".join(blocks)
                blocks = iter([contents.shown])
            if member.kind is Kind.FOLDER:
                tree.enter(member.path)
            elif member.kind is Kind.FILE:
                tree.write(member, blocks)
            stream.exactly(-member.size % _BLOCK)
        stream.end()
        for link in contents.links():
            tree.link(link)
    contents.unpacked_bytes = stream.count
    return contents


class _Counted:
    """Bytes that are counted before they are read."""

    def __init__(self, plain: IO[bytes], most: int) -> None:
        self._plain, self._most = plain, most
        self.count = 0

    def exactly(self, size: int) -> bytes:
        """So many bytes. Raises: ArchiveError if there are less, or they would be too many."""
        self.count += size
        if self.count > self._most:
            raise ArchiveError(f"it unpacks to more than {self._most} bytes")
        content = self._plain.read(size) if size else b""
        if len(content) != size:
            raise ArchiveError("it ends in the middle")
        return content

    def blocks(self, size: int) -> Iterator[bytes]:
        """So many bytes, a part at a time."""
        if self.count + size > self._most:
            raise ArchiveError(f"it unpacks to more than {self._most} bytes")
        while size:
            block = self.exactly(min(size, _READ_BYTES))
            yield block
            size -= len(block)

    def end(self) -> None:
        """Read what follows the last member: zeros. gzip compares its checksum at the end."""
        while block := self._plain.read(_READ_BYTES):
            self.count += len(block)
            if self.count > self._most or block.strip(b"\0"):
                raise ArchiveError("something follows its end")


def _members(stream: _Counted) -> Iterator[Member]:
    """The members in turn. Whoever takes one reads its content and the padding behind it."""
    said: dict[str, str] = {}
    while (block := stream.exactly(_BLOCK)).strip(b"\0"):
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            if header.type in (tarfile.XHDTYPE, *_LONG_NAMES):
                if not 0 <= header.size <= _MOST_HEADER_BYTES:
                    raise ArchiveError("a name in it has no end")
                content = stream.exactly(header.size)
                stream.exactly(-header.size % _BLOCK)
                said |= _extended(header.type, content)
            else:
                yield _member(header, said)
                said = {}
        except (tarfile.TarError, UnicodeError) as error:
            raise ArchiveError(f"it has a header that cannot be read: {error}") from error


def _extended(kind: bytes, content: bytes) -> dict[str, str]:
    """What a header says of the next one: records ``LENGTH KEY=VALUE``, or one long name of GNU."""
    if kind in _LONG_NAMES:
        return {_LONG_NAMES[kind]: content.rstrip(b"\0").decode()}
    said, at = {}, 0
    while at < len(content):
        digits = content[at : at + 8].partition(b" ")[0]
        end = at + (int(digits) if digits.isdigit() else 0)
        record = content[at + len(digits) + 1 : end]
        key, mark, value = record.partition(b"=")
        if not mark or not record.endswith(b"\n") or end > len(content) or key.startswith(b"GNU.sparse"):
            raise ArchiveError("it has a header that is not read here")
        said[key.decode()] = value[:-1].decode()
        at = end
    return said


def _member(header: tarfile.TarInfo, said: dict[str, str]) -> Member:
    """A member that may be unpacked. Raises: ArchiveError."""
    name, size = said.get("path", header.name), said.get("size", str(header.size))
    kind = _KINDS.get(header.type)
    if kind is None or re.fullmatch(r"[0-9]{1,15}", size) is None:
        raise ArchiveError(f"{name[:80]!a} is neither a file nor a folder nor a link, or has no size")
    path = _parts(name.removesuffix("/") if kind is Kind.FOLDER else name)
    link = said.get("linkpath", header.linkname)
    if kind is Kind.FILE:
        return Member(path, kind, size=int(size), is_program=bool(header.mode & 0o100))
    if kind is Kind.FOLDER:
        return Member(path, kind)
    if kind is Kind.HARD_LINK:
        return Member(path, kind, target=_parts(link))
    return Member(path, kind, target=_led_to(path[:-1], link), link=link)


def _parts(text: str) -> Parts:
    """The components of a path. Raises: ArchiveError if it could lead elsewhere, or no system takes it."""
    parts = tuple(text.split("/"))
    is_short = len(text.encode()) <= MOST_PATH_BYTES and all(len(one.encode()) <= MOST_NAME_BYTES for one in parts)
    if not is_short or len(parts) > MOST_DEPTH or any(one in ("", ".", "..") or _STRANGE.search(one) for one in parts):
        raise ArchiveError(f"the path {text[:80]!a} is too long, strange, or leads out of the folder")
    return parts


def _led_to(folder: Parts, link: str) -> Parts:
    """What a symbolic link in a folder leads to: ``..`` at its start only, and never above the top folder."""
    while link.startswith("../") and len(folder) > 1:
        folder, link = folder[:-1], link[3:]
    return (*folder, *_parts(link))


def _named(path: Sequence[str]) -> str:
    return ascii("/".join(path))


class _Tree:
    """Writes into a folder, nowhere else, and never over anything. Without a folder it only reads what it is given."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._chain: list[tuple[str, int]] = []
        """Names and descriptors of the folder that was last used and of those around it, outermost first."""

    def __enter__(self) -> Self:
        if self._root is not None and BY_DESCRIPTOR:
            self._chain.append(("", os.open(self._root, _FOLDER)))
        return self

    def __exit__(self, *_: object) -> None:
        self._leave(0)

    def _leave(self, depth: int) -> None:
        for _, descriptor in self._chain[depth:]:
            os.close(descriptor)
        del self._chain[depth:]

    def enter(self, folder: Parts) -> int | None:
        """The descriptor of a folder, which is made if it is not there. Raises: OSError if a link is in its place."""
        if self._root is None:
            return None
        if not BY_DESCRIPTOR:
            for depth in range(len(folder)):
                self._root.joinpath(*folder[: depth + 1]).mkdir(exist_ok=True)
            return None
        shared = 0
        while shared < min(len(folder), len(self._chain) - 1) and self._chain[shared + 1][0] == folder[shared]:
            shared += 1
        self._leave(shared + 1)
        for name in folder[shared:]:
            outer = self._chain[-1][1]
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=outer)
            self._chain.append((name, os.open(name, _FOLDER, dir_fd=outer)))
        return self._chain[-1][1]

    def write(self, member: Member, blocks: Iterator[bytes]) -> None:
        """Make a file. Raises: OSError if its name is taken."""
        if self._root is None:
            for _ in blocks:
                pass
            return
        folder = self.enter(member.path[:-1])
        name = member.path[-1] if BY_DESCRIPTOR else self._root.joinpath(*member.path)
        mode = 0o755 if member.is_program else 0o644
        descriptor = os.open(name, _NEW_FILE | getattr(os, "O_BINARY", 0), mode, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            for block in blocks:
                file.write(block)

    def link(self, member: Member) -> None:
        """Make a link. Raises: OSError if its name is taken."""
        folder = self.enter(member.path[:-1])
        if folder is None:
            return
        if member.kind is Kind.LINK:
            os.symlink(member.link, member.path[-1], dir_fd=folder)
            return
        folder = os.dup(folder)
        try:
            source = self.enter(member.target[:-1])
            names = member.target[-1], member.path[-1]
            os.link(*names, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
