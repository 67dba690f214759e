"""Engine packs: a Python with torch and the targets as one archive, installed side by side, without any network.

An archive ``ace-engine-VERSION-PLATFORM-KIND.tar.gz`` holds one folder of that name with ``pack.json``. Installed packs
lie in the user's data folder, or in ``engines`` beside a frozen program, where nothing is changed.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import platform
import re
import shutil
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

import msgspec
import platformdirs

import ace_studio
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.places import APP_NAME
from ace_studio.records.safe_file import decode_plain, read_plain, remove_leftovers, temporary_prefix
from ace_studio.records.system_faults import missing_room, system_problem

if TYPE_CHECKING:
    from tarfile import TarInfo

_NAME = re.compile(r"ace-engine-([\w.+]+)-(\w+-\w+)-(\w+)")
_BLOCK = 1 << 20
_TAKE_ANOTHER = "Copy or download the file again"


class InstallStep(StrEnum):
    """What an installation is doing."""

    HASH = "Comparing the checksum"
    UNPACK = "Unpacking"
    COUNT = "Counting the files"


Report = Callable[[InstallStep, float], object]
"""Takes the step and its fraction, 0..1."""


class PackFile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``pack.json`` says."""

    format: int
    name: str
    version: str
    platform: str
    kind: str
    python: str
    packages: dict[str, str] = {}
    files: int
    """Files of the pack beside ``pack.json``."""
    bytes: int
    """Size of these files."""


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """An installed pack."""

    name: str
    folder: str
    python: str = ""
    """Path of its interpreter."""
    version: str = ""
    kind: str = ""
    bytes: int = 0
    packages: dict[str, str] = {}
    is_portable: bool = False
    """Whether it lies beside the program, where it is not removed."""
    fault: str = ""
    """Why it cannot be used; empty if it can."""


def platform_tag() -> str:
    """The platform as packs name it, such as ``linux-x86_64``."""
    return f"{sys.platform}-{platform.machine().lower()}"


def packs_folder() -> Path:
    """Where the user's packs are; it need not exist."""
    return platformdirs.user_data_path(APP_NAME, appauthor=False) / "engines"


def find_packs() -> tuple[Pack, ...]:
    """The installed packs, those that can be used first and of them the best: newest version, then most packages."""
    places = [(packs_folder(), False)]
    if getattr(sys, "frozen", False):
        places.insert(0, (Path(sys.executable).resolve().parent / "engines", True))
    found = []
    for place, is_portable in places:
        with contextlib.suppress(OSError):  # mostly: there is no such folder
            folders = [one for one in place.iterdir() if _NAME.fullmatch(one.name) and one.is_dir()]
            found += [_look_at(folder, is_portable=is_portable) for folder in folders]
    return tuple(sorted(found, key=lambda one: (not one.fault, _order(one.version), len(one.packages)), reverse=True))


def best_pack() -> Pack | None:
    """The pack that runs the engine, if the user names no other Python."""
    return next((pack for pack in find_packs() if not pack.fault), None)


def offered_files() -> tuple[Path, ...]:
    """Archives for this program that lie beside it or among the user's downloads, the newest version first."""
    folders = [Path(platformdirs.user_downloads_dir())]
    if getattr(sys, "frozen", False):
        folders.insert(0, Path(sys.executable).resolve().parent)
    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found += [file for file in sorted(folder.glob("ace-engine-*.tar.gz")) if not _misfit(pack_name(file))]
    return tuple(sorted(found, key=lambda file: _order(pack_name(file).split("-")[2]), reverse=True))


def pack_name(file: Path) -> str:
    """The name of the pack in a file by the file's name, which browsers extend by " (1)"; empty if it is no pack."""
    found = _NAME.match(file.name.removesuffix(".tar.gz")) if file.name.endswith(".tar.gz") else None
    return found[0] if found else ""


def install(file: Path, report: Report, is_cancelled: Callable[[], bool] = bool) -> Pack:
    """Install a pack; whatever goes wrong, nothing is left of it. A sound pack of that name is left as it is.

    Raises: AceError. CANCELLED, BAD_FILE if the archive is damaged or no pack, UNSUPPORTED if it is for another system
    or version, NOT_FOUND, SYSTEM if the disk is full, USAGE if a damaged pack is to be replaced while it runs.
    """
    place = packs_folder()
    with _faults(file):
        name = _top_folder(file)
        if (place / name).is_dir():
            with contextlib.suppress(AceError):  # a damaged one is replaced
                _require_whole(place / name)
                return _look_at(place / name, is_portable=False)

        def fill(folder: Path) -> None:
            _require_room(file, place)
            _compare_hash(file, partial(report, InstallStep.HASH), is_cancelled)
            _unpack(file, folder.parent, partial(report, InstallStep.UNPACK), is_cancelled)
            report(InstallStep.COUNT, 0.0)
            _require_whole(folder)

        return keep(name, fill, is_cancelled)


def keep(name: str, fill: Callable[[Path], object], is_cancelled: Callable[[], bool] = bool) -> Pack:
    """Make a pack of this name, in place of one that is there, by a function that fills its folder.

    Whatever that raises, nothing is left.

    Raises: also AceError(CANCELLED, USAGE if the one that is there runs), OSError.
    """
    place = packs_folder()
    place.mkdir(parents=True, exist_ok=True)
    remove_leftovers(place / "pack")
    with _temporary_folder(place) as temporary:
        fill(temporary / name)
        _stop_if(is_cancelled)
        if (place / name).exists():
            _discard(place / name)
        (temporary / name).rename(place / name)
    return _look_at(place / name, is_portable=False)


def write_pack_file(folder: Path, said: PackFile) -> None:
    """Describe the pack in a folder."""
    (folder / "pack.json").write_bytes(msgspec.json.format(msgspec.json.encode(said), indent=1))


def remove(name: str) -> None:
    """Remove an installed pack. Raises: AceError(NOT_FOUND, USAGE if it runs or lies beside the program, SYSTEM)."""
    pack = next((one for one in find_packs() if one.name == name), None)
    if pack is None:
        remedy = "List them: ace-studio engine list"
        raise AceError.of(ErrorCode.NOT_FOUND, f"No engine pack {name} is installed", remedy=remedy)
    if pack.is_portable:
        what, remedy = f"{name} belongs to the program's own folder", "Delete its folder if you do not need it"
        raise AceError.of(ErrorCode.USAGE, what, remedy=remedy, where=pack.folder)
    with explained(ErrorCode.SYSTEM, f"{name} could not be removed", where=pack.folder):
        _discard(Path(pack.folder))


def _discard(folder: Path) -> None:
    """Delete a pack, after a rename, so that what is left of an interrupted deletion is never taken for a pack."""
    _require_unused(folder)
    with _temporary_folder(folder.parent) as trash:
        folder.rename(trash / folder.name)


@contextlib.contextmanager
def _temporary_folder(place: Path) -> Iterator[Path]:
    """A folder that is removed at the end, or by the next installation if this process is killed."""
    made = Path(tempfile.mkdtemp(dir=place, prefix=temporary_prefix(place / "pack"), suffix=".tmp"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _require_unused(folder: Path) -> None:
    import psutil  # noqa: PLC0415 - not needed for the first picture of the window

    place = str(folder) + os.sep
    for process in psutil.process_iter(["exe", "cmdline"]):
        began = (process.info["exe"] or "", *(process.info["cmdline"] or ())[:1])
        if any(word.startswith(place) for word in began):
            raise AceError.of(
                ErrorCode.USAGE,
                f"{folder.name} is in use",
                why=f"process {process.pid} runs in it",
                remedy="Close the windows and end the jobs that use it, or choose another Python in Settings > Engine",
            )


def _look_at(folder: Path, *, is_portable: bool) -> Pack:
    """A pack by its ``pack.json``. Its files are not counted: that takes long."""
    blank = Pack(name=folder.name, folder=str(folder), is_portable=is_portable)
    try:
        said = _read_pack_file(folder)
    except AceError as error:
        return msgspec.structs.replace(blank, fault=error.problem.why or error.problem.what)
    python = folder / said.python
    return msgspec.structs.replace(
        blank,
        python=str(python),
        version=said.version,
        kind=said.kind,
        bytes=said.bytes,
        packages=said.packages,
        fault=_misfit(said.name) or ("" if python.is_file() else f"{said.python} is missing"),
    )


def _misfit(name: str) -> str:
    """Why a pack of this name does not fit this program: another system or another series of versions."""
    found = _NAME.fullmatch(name)
    if found is None:
        return "it is not named like an engine pack"
    if found[2] != platform_tag():
        return f"it is for {found[2]}, and this is {platform_tag()}"
    series, ours = found[1].split(".")[:2], ace_studio.__version__.split(".")[:2]
    if series != ours:
        return f"it is for ACE Studio {'.'.join(series)}, and this is {'.'.join(ours)}"
    return ""


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _read_pack_file(folder: Path) -> PackFile:
    what = f"{folder.name} is not a sound engine pack"
    with explained(ErrorCode.BAD_FILE, what, remedy=_TAKE_ANOTHER, where=folder, of=(OSError, msgspec.DecodeError)):
        said = msgspec.convert(decode_plain(read_plain(folder / "pack.json"), dict), PackFile)
        inside = PurePosixPath(said.python)
        if said.format != 1 or said.name != folder.name or inside.is_absolute() or ".." in inside.parts:
            raise msgspec.DecodeError("its pack.json is not that of this folder")
    return said


def _require_whole(folder: Path) -> PackFile:
    """Compare the number of files and bytes with ``pack.json``. Raises: AceError(BAD_FILE)."""
    said = _read_pack_file(folder)
    sizes = [one.stat().st_size for one in folder.rglob("*") if one.is_file() and one != folder / "pack.json"]
    if (len(sizes), sum(sizes)) != (said.files, said.bytes):
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{folder.name} is damaged",
            why=f"it has {len(sizes)} files with {sum(sizes)} bytes, and should have {said.files} with {said.bytes}",
            remedy=_TAKE_ANOTHER,
        )
    return said


# --- the archive ---


@contextlib.contextmanager
def _faults(file: Path) -> Iterator[None]:
    """Turn what reading, unpacking and writing raise into an `AceError`."""
    import tarfile  # noqa: PLC0415 - not needed for the first picture of the window

    try:
        yield
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        what = f"{file.name} is damaged, or not an engine pack"
        raise AceError.of(ErrorCode.BAD_FILE, what, why=str(error), remedy=_TAKE_ANOTHER, where=str(file)) from error
    except OSError as error:
        if fault := system_problem(error):
            raise AceError(fault) from error
        code = ErrorCode.SYSTEM if file.is_file() else ErrorCode.NOT_FOUND
        what, where = f"{file.name} cannot be installed", str(error.filename or file)
        remedy = "Look whether the file is there, and whether you may write to the folder of the packs"
        raise AceError.of(code, what, why=error.strerror or str(error), remedy=remedy, where=where) from error


def _top_folder(file: Path) -> str:
    """The name of the pack, by the first member. Raises: AceError if it does not fit; what `_faults` takes."""
    import tarfile  # noqa: PLC0415 - not needed for the first picture of the window

    with gzip.open(file) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        first = archive.next()
    name = PurePosixPath(first.name if first else "").parts[:1]
    if misfit := _misfit("".join(name)):
        what, remedy = f"{file.name} cannot be used here", "Take the engine pack of this version for this system"
        code = ErrorCode.UNSUPPORTED if name and _NAME.fullmatch(name[0]) else ErrorCode.BAD_FILE
        raise AceError.of(code, what, why=misfit, remedy=remedy, where=str(file))
    return name[0]


def _require_room(file: Path, place: Path) -> None:
    """Raises: AceError(SYSTEM) if the disk has less room than the unpacked archive needs."""
    with file.open("rb") as stream:
        stream.seek(-4, os.SEEK_END)
        (unpacked,) = struct.unpack("<I", stream.read())  # of gzip; without what is above 4 GiB
        packed = stream.tell()
    while unpacked < packed:
        unpacked += 1 << 32
    if why := missing_room(place, unpacked):
        what, remedy = "There is not enough room for the engine", "Make room there, and try again"
        raise AceError.of(ErrorCode.SYSTEM, what, why=why, remedy=remedy, where=str(place))


def _compare_hash(file: Path, report: Callable[[float], object], is_cancelled: Callable[[], bool]) -> None:
    """Compare with ``FILE.sha256`` beside it, if there is one. Raises: AceError(BAD_FILE), OSError."""
    beside = file.with_name(f"{file.name}.sha256")
    if not beside.is_file():
        return
    wanted = (read_plain(beside, most=_BLOCK).decode("ascii", "replace").split() or [""])[0].lower()
    digest = hashlib.sha256()
    with file.open("rb") as raw:
        stream = _Watched(raw, report, is_cancelled)
        while block := stream.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != wanted:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{file.name} is damaged",
            why=f"its SHA-256 is {digest.hexdigest()}, and {beside.name} says {wanted}",
            remedy=_TAKE_ANOTHER,
            where=str(file),
        )


def _unpack(file: Path, into: Path, report: Callable[[float], object], is_cancelled: Callable[[], bool]) -> None:
    """Unpack everything. Members that lead out of the folder are refused."""
    import tarfile  # noqa: PLC0415 - not needed for the first picture of the window

    with file.open("rb") as raw, gzip.GzipFile(fileobj=_Watched(raw, report, is_cancelled)) as plain:  # type: ignore[call-overload]
        with tarfile.open(fileobj=plain, mode="r|", bufsize=_BLOCK) as archive:
            for member in archive:
                if hasattr(tarfile, "data_filter"):
                    archive.extract(member, into, filter="data")
                else:  # Python before 3.11.4, such as Debian 12's
                    _refuse_outside(member, into.resolve())
                    archive.extract(member, into)
        while plain.read(_BLOCK):
            pass  # gzip compares its checksum at the end


def _refuse_outside(member: TarInfo, into: Path) -> None:
    """Raises: tarfile.TarError if a member, or what it links to, is no file or folder below ``into``."""
    import tarfile  # noqa: PLC0415 - not needed for the first picture of the window

    beside = Path(member.name).parent if member.issym() else Path()
    ends = [into / member.name, *([into / beside / member.linkname] if member.issym() or member.islnk() else [])]
    is_plain = member.isfile() or member.isdir() or member.issym() or member.islnk()
    if not is_plain or not all(end.resolve().is_relative_to(into) for end in ends):
        raise tarfile.TarError(f"{member.name} leads out of the folder")


class _Watched:
    """A file that reports every percent that was read, and ends when somebody cancels."""

    def __init__(self, stream: IO[bytes], report: Callable[[float], object], is_cancelled: Callable[[], bool]) -> None:
        self._stream, self._report, self._is_cancelled = stream, report, is_cancelled
        self._size = max(1, os.fstat(stream.fileno()).st_size)
        self._percent = -1

    def read(self, size: int = -1) -> bytes:
        _stop_if(self._is_cancelled)
        block = self._stream.read(size)
        percent = 100 * self._stream.tell() // self._size
        if percent != self._percent:
            self._percent = percent
            self._report(percent / 100)
        return block


def _stop_if(is_cancelled: Callable[[], bool]) -> None:
    if is_cancelled():
        raise AceError.of(ErrorCode.CANCELLED, "The installation was cancelled", why="nothing of it was kept")
