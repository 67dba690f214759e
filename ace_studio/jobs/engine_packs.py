"""Engine packs: a Python with torch and the targets as one archive, installed side by side, without any network.

An archive ``ace-engine-VERSION-PLATFORM-KIND.tar.gz`` holds one folder of that name with ``pack.json``; `pack_install`
reads and installs it. Installed packs lie in the user's data folder, or in ``engines`` beside a frozen program, where
nothing is changed.
"""

import contextlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import msgspec
import platformdirs

import ace_studio
from ace_studio.jobs.signature import Signer
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.places import APP_NAME
from ace_studio.records.safe_file import decode_plain, read_plain, remove_leftovers, temporary_prefix

_NAME = re.compile(r"ace-engine-([\w.+]+)-(\w+-\w+)-(\w+)")
TAKE_ANOTHER = "Copy or download the file again"


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
    sha256: str = ""
    """Of the archive that it was installed from. This and the next are written by the installation."""
    signer: Signer | None = None
    """Who signed that archive."""


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
    sha256: str = ""
    """Of the archive that it was installed from; empty if it was not, or by an earlier version."""
    signer: Signer | None = None
    """Who signed that archive; None if there is none."""
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
            found += [look_at(folder, is_portable=is_portable) for folder in folders]
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
            found += [file for file in sorted(folder.glob("ace-engine-*.tar.gz")) if not misfit(pack_name(file))]
    return tuple(sorted(found, key=lambda file: _order(pack_name(file).split("-")[2]), reverse=True))


def pack_name(file: Path) -> str:
    """The name of the pack in a file by the file's name, which browsers extend by " (1)"; empty if it is no pack."""
    found = _NAME.match(file.name.removesuffix(".tar.gz")) if file.name.endswith(".tar.gz") else None
    return found[0] if found else ""


def keep(name: str, fill: Callable[[Path], object], is_cancelled: Callable[[], bool] = bool) -> Pack:
    """Make a pack of this name, in place of one that is there, by a function that fills its folder.

    Whatever that raises, nothing is left.

    Raises: also AceError(CANCELLED, USAGE if the one that is there runs), OSError.
    """
    place = packs_folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_leftovers(place / "pack")
    with _temporary_folder(place) as temporary:
        fill(temporary / name)
        stop_if(is_cancelled)
        if (place / name).exists():
            _discard(place / name)
        (temporary / name).rename(place / name)
    return look_at(place / name)


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


def look_at(folder: Path, *, is_portable: bool = False) -> Pack:
    """A pack by its ``pack.json``. Its files are not counted: that takes long."""
    blank = Pack(name=folder.name, folder=str(folder), is_portable=is_portable)
    try:
        said = _of_folder(folder)
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
        sha256="" if is_portable else said.sha256,
        signer=None if is_portable else said.signer,
        fault=misfit(said.name) or ("" if python.is_file() else f"{said.python} is missing"),
    )


def misfit(name: str) -> str:
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


def read_pack_file(content: bytes, name: str) -> PackFile:
    """What the ``pack.json`` of a pack of this name says. Raises: AceError(BAD_FILE) if it is something else's."""
    what = f"{name} is not a sound engine pack"
    with explained(ErrorCode.BAD_FILE, what, remedy=TAKE_ANOTHER, where=name, of=msgspec.DecodeError):
        said = msgspec.convert(decode_plain(content, dict), PackFile)
        inside = PurePosixPath(said.python)
        if said.format != 1 or said.name != name or inside.is_absolute() or ".." in inside.parts:
            raise msgspec.DecodeError("its pack.json is not that of this folder")
    return said


def _of_folder(folder: Path) -> PackFile:
    with explained(ErrorCode.BAD_FILE, f"{folder.name} is not a sound engine pack", where=folder):
        content = read_plain(folder / "pack.json")
    return read_pack_file(content, folder.name)


def require_whole(folder: Path) -> PackFile:
    """Compare the number of files and bytes with ``pack.json``. Raises: AceError(BAD_FILE)."""
    said = _of_folder(folder)
    sizes = [one.stat().st_size for one in folder.rglob("*") if one.is_file() and one != folder / "pack.json"]
    require_counted(said, len(sizes), sum(sizes))
    return said


def require_counted(said: PackFile, files: int, size: int) -> None:
    """Compare what there is with what ``pack.json`` says. Raises: AceError(BAD_FILE)."""
    if (files, size) != (said.files, said.bytes):
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{said.name} is damaged",
            why=f"it has {files} files with {size} bytes, and should have {said.files} with {said.bytes}",
            remedy=TAKE_ANOTHER,
        )


def stop_if(is_cancelled: Callable[[], bool]) -> None:
    """Raises: AceError(CANCELLED) if somebody cancelled."""
    if is_cancelled():
        raise AceError.of(ErrorCode.CANCELLED, "The installation was cancelled", why="nothing of it was kept")
