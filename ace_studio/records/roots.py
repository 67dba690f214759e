"""Where a call for somebody else may read and write: below folders that the person named, never on what is there.

What acts for a person, such as an agent's tool, names paths as a stranger does. While `present` holds roots, each path
is judged with its links resolved, and a write there follows no link that was planted since (`steady_folder`).
"""

import contextlib
import errno
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.places import resource_folder

_CODE_SUFFIXES = (".py", ".pyc", ".pyd", ".so", ".pth", ".sh", ".bat", ".cmd", ".desktop")
"""A new file of these may run by itself, such as a module in front of another of its name."""
_RUN_BY_PYTHON = {"__init__.py", "sitecustomize.py", "usercustomize.py"}
_OF_PYTHON = {"site-packages", "dist-packages"}
_HAS_DESCRIPTOR_PATHS: bool = sys.platform == "linux"


@dataclass(frozen=True)
class Roots:
    """The folders of one server. ``read`` does not repeat those of ``write``."""

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    """Folders of ACE Studio for this user, where nothing is written for others."""
    replaceable: tuple[Path, ...] = ()
    """What is there and may be written over or changed in this call: a file, or a folder that gets new results."""
    is_person: bool = False
    """A person gave the command, who may name any path: each stays as it is."""

    def readable(self, path: Path) -> Path:
        """The place of a path that may be read. Raises: AceError(UNTRUSTED) if it may not."""
        if self.is_person:
            return path
        place = resolved(path)
        if not _is_open(place, (*self.read, *self.write, resource_folder().resolve())):
            raise _refusal(path, place, "read")
        return place

    def inside(self, path: Path) -> Path:
        """The place of a path below which something may be written. Raises: AceError(UNTRUSTED) if nothing may."""
        if self.is_person:
            return path
        place = resolved(path)
        if not _is_open(place, self.write):
            raise _refusal(path, place, "write")
        if any(_is_inside(place, one) for one in self.own):
            why = "lies in a folder of ACE Studio itself"
        elif _OF_PYTHON & set(place.parts) or any(_is_inside(place, one) for one in _folders_of_python()):
            why = "lies in a folder of a Python"
        elif place.name.lower() in _RUN_BY_PYTHON:
            why = "would be run by Python"
        else:
            return place
        what, remedy = f"No tool writes to {path}", "Name another place"
        raise AceError.of(ErrorCode.UNTRUSTED, what, why=f"{place} {why}", remedy=remedy)

    def writable(self, path: Path) -> Path:
        """The place of a path that is new, or that the call may replace. Raises: AceError(UNTRUSTED) if it is neither.

        An empty folder counts as new.
        """
        place = self.inside(path)
        if self.is_person or place in self.replaceable:
            return place
        if place.suffix.lower() in _CODE_SUFFIXES:
            remedy, why = "Choose another ending", f"a file that ends in {place.suffix} may run by itself"
        elif not os.path.lexists(place) or (place.is_dir() and not any(place.iterdir())):
            return place
        else:
            why = "it is there already"
            remedy = f"Choose a new name, or say what goes: list {place} in the argument `replace`"
        raise AceError.of(ErrorCode.UNTRUSTED, f"No tool writes over {path}", why=why, remedy=remedy)


present = ContextVar("present", default=Roots(is_person=True))  # noqa: B039 - it is frozen
"""The roots of the call that is running."""


def resolved(path: Path) -> Path:
    """The path with its links resolved. Raises: AceError(USAGE) if it is none."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a ring, no such user, a NUL character
        raise AceError.of(ErrorCode.USAGE, f"{path} is not a path", why=message_of(error)) from error


def is_for_others(path: Path) -> bool:
    """Whether a write there is one that the running call was asked for, and not one of ACE Studio's own."""
    roots = present.get()
    return any(map(path.is_relative_to, roots.write)) and not any(map(path.is_relative_to, roots.own))


@contextlib.contextmanager
def steady_folder(folder: Path, *, make: bool = False, below: Path | None = None) -> Iterator[Path]:
    """The folder by a path that goes on leading to it, whatever is put in its place or above it meanwhile.

    For a person it is the folder as it is, but no link may be on the way to it from ``below``. For others its path
    holds no link: where one appears, it was planted after the path was judged. That is certain on Linux; elsewhere it
    is looked at once. ``make``: it, with its parents.

    Raises: OSError if a link or a file is on the way, or if it does not lie below.
    """
    start = Path(folder.anchor) if is_for_others(folder) else below
    if make and start in {None, below}:
        (start or folder).mkdir(parents=True, exist_ok=True)
    if start is None:
        yield folder
        return
    names = folder.relative_to(start).parts if folder.is_relative_to(start) else ("..",)
    if ".." in names:
        raise OSError(errno.EINVAL, f"it is not below {start}", str(folder))
    if _HAS_DESCRIPTOR_PATHS:
        descriptor = _opened_without_links(start, names, make=make)
        try:
            yield Path(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    for at in (start.joinpath(*names[:count]) for count in range(1, len(names) + 1)):
        if make and not os.path.lexists(at):
            at.mkdir(exist_ok=True)
        if at.is_symlink() or not at.is_dir():
            raise OSError(errno.ELOOP, "a link or a file is on the way to it", str(folder))
    yield folder


def _opened_without_links(start: Path, names: tuple[str, ...], *, make: bool) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(start, flags)
    for name in names:
        above = descriptor
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
            descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=above)
        except NotADirectoryError as error:
            raise OSError(errno.ELOOP, "a link or a file is on the way to it", str(start.joinpath(*names))) from error
        finally:
            os.close(above)
    return descriptor


def _is_open(place: Path, roots: tuple[Path, ...]) -> bool:
    """Whether it is one of the roots or below one, and not in or at what is hidden there."""
    below = (place.relative_to(root) for root in roots if place.is_relative_to(root))
    return any(not any(name.startswith(".") for name in one.parts) for one in below)


def _is_inside(place: Path, folder: Path) -> bool:
    """Whether it lies there under any name: case may not count, and a folder may be mounted twice."""
    known = [one for one in (place, *place.parents) if one.exists()] if folder.exists() else []
    return place.is_relative_to(folder.resolve()) or any(one.samefile(folder) for one in known)


@cache
def _folders_of_python() -> tuple[Path, ...]:
    named = sysconfig.get_paths()
    found = [named[key] for key in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")]
    found += [*site.getsitepackages(), site.getusersitepackages(), str(Path(__file__).parents[1])]
    return tuple(Path(one).resolve() for one in dict.fromkeys(found))


def _refusal(path: Path, place: Path, word: str) -> AceError:
    return AceError.of(
        ErrorCode.UNTRUSTED,
        f"No tool may {word} {path}",
        why=f"{place} is hidden, or outside of the folders that the user named for tools to {word} in",
        remedy=f"The user starts the server with: ace-studio mcp --{word} DIR",
    )
