"""Installs an engine pack from a file: it is examined, a person agrees to these very bytes, and they are unpacked.

What is examined is neither written nor run. The SHA-256 is taken of the bytes that are unpacked, while they are read,
so that a file that was exchanged after the question is never kept.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, cast

import msgspec

from ace_studio.jobs.engine_packs import (
    TAKE_ANOTHER,
    Pack,
    best_pack,
    keep,
    look_at,
    misfit,
    pack_name,
    packs_folder,
    read_pack_file,
    require_counted,
    require_whole,
    stop_if,
    write_pack_file,
)
from ace_studio.jobs.signature import Signature, Signer, signature_of
from ace_studio.jobs.unpack import ArchiveError, unpack
from ace_studio.records import containment
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.safe_file import open_plain, read_plain
from ace_studio.records.system_faults import missing_room, system_problem

LARGEST_EXPANSION = 50
"""An archive of Python and its packages grows by 4; deflate itself can do 1032."""
FREE_EXPANSION_BYTES = 64_000_000
_PACK_FILE = "pack.json"
_BLOCK = 1 << 20


class InstallStep(StrEnum):
    """What is being done."""

    EXAMINE = "Reading the file"
    UNPACK = "Unpacking"
    COUNT = "Counting the files"


Report = Callable[[InstallStep, float], object]
"""Takes the step and its fraction, 0..1."""


class PackOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A sound pack in a file, and what a person should know before it is installed."""

    file: str
    sha256: str
    """Of the file."""
    name: str
    bytes: int
    """When it is installed."""
    packages: dict[str, str]
    signed: Signature
    origin: str
    """Why the file counts as a stranger's, as `containment.from_elsewhere` says; empty if nothing says so."""
    replaces: str
    """Pack that runs the engine now, if none is chosen; empty if there is none."""
    unpacked_bytes: int

    @property
    def is_signed(self) -> bool:
        """Whether the makers of this program signed it."""
        return self.signed.signer is Signer.MAKERS


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes to one file."""

    sha256: str
    takes_unsigned: bool = False
    """Whether the person was told that the makers did not sign it, and confirmed that too."""


def examine(file: Path, report: Report, is_cancelled: Callable[[], bool] = bool) -> PackOffer:
    """Read a file to its end and say what it is. Nothing is written.

    Raises: AceError. CANCELLED, BAD_FILE if it is damaged, no pack, holds what is not unpacked or is not what its
    checksum or its signature says, UNSUPPORTED if it is for another system or version, NOT_FOUND, SYSTEM.
    """
    with _faults(file), _opened(file, partial(report, InstallStep.EXAMINE), is_cancelled) as (plain, read):
        most = LARGEST_EXPANSION * read.size + FREE_EXPANSION_BYTES
        contents = unpack(plain, None, most_bytes=most, show=_PACK_FILE, accept=partial(_require_fit, file))
        read.to_the_end()
    said = read_pack_file(contents.shown, contents.top)
    require_counted(said, *contents.files(without=_PACK_FILE))
    if not contents.is_file((contents.top, *said.python.split("/"))):
        what, why = f"{contents.top} is not a sound engine pack", f"{said.python} is missing"
        raise AceError.of(ErrorCode.BAD_FILE, what, why=why, remedy=TAKE_ANOTHER, where=str(file))
    sha256 = read.sha256.hexdigest()
    _compare_checksum(file, sha256)
    present = best_pack()
    return PackOffer(
        file=str(file.absolute()),
        sha256=sha256,
        name=said.name,
        bytes=said.bytes,
        packages=said.packages,
        signed=signature_of(file, read.blake2b.digest()),
        origin=containment.from_elsewhere(file),
        replaces=present.name if present else "",
        unpacked_bytes=contents.unpacked_bytes,
    )


def install(offer: PackOffer, consent: Consent, report: Report, is_cancelled: Callable[[], bool] = bool) -> Pack:
    """Install what was offered; whatever goes wrong, nothing is left of it. The same one, if sound, is left as it is.

    Raises: AceError. UNTRUSTED without a fitting consent, CANCELLED, BAD_FILE if the file is not what was examined,
    NOT_FOUND, SYSTEM if the disk is full, USAGE if the pack that it replaces runs.
    """
    _require_consent(offer, consent)
    file, place = Path(offer.file), packs_folder()
    there = look_at(place / offer.name)
    if (there.sha256, there.signer) == (offer.sha256, offer.signed.signer):
        with contextlib.suppress(AceError):  # a damaged one is replaced
            require_whole(place / offer.name)
            return there

    def fill(folder: Path) -> None:
        if why := missing_room(place, offer.unpacked_bytes):
            what, remedy = "There is not enough room for the engine", "Make room there, and try again"
            raise AceError.of(ErrorCode.SYSTEM, what, why=why, remedy=remedy, where=str(place))
        with _opened(file, partial(report, InstallStep.UNPACK), is_cancelled) as (plain, read):
            unpack(plain, folder.parent, most_bytes=offer.unpacked_bytes)
            read.to_the_end()
        if read.sha256.hexdigest() != offer.sha256:
            raise ArchiveError("it is another file than the one that was examined and agreed to")
        report(InstallStep.COUNT, 0.0)
        said = require_whole(folder)
        write_pack_file(folder, msgspec.structs.replace(said, sha256=offer.sha256, signer=offer.signed.signer))

    with _faults(file):
        return keep(offer.name, fill, is_cancelled)


def _require_consent(offer: PackOffer, consent: Consent) -> None:
    if consent.sha256.lower() != offer.sha256:
        why = f"its SHA-256 is {offer.sha256}, and {consent.sha256 or 'nothing'} was agreed to"
    elif not offer.is_signed and not consent.takes_unsigned:
        why = "the makers of this program did not sign it"
    else:
        return
    remedy = "Compare the SHA-256 with that of its maker, and agree to this one, in the window or by --trust SHA256"
    raise AceError.of(ErrorCode.UNTRUSTED, f"{offer.name} was not installed", why=why, remedy=remedy, where=offer.file)


def _require_fit(file: Path, name: str) -> None:
    """Raises: AceError if a pack of this name does not fit this program."""
    if why := misfit(name):
        what, remedy = f"{file.name} cannot be used here", "Take the engine pack of this version for this system"
        code = ErrorCode.UNSUPPORTED if pack_name(Path(f"{name}.tar.gz")) == name else ErrorCode.BAD_FILE
        raise AceError.of(code, what, why=why, remedy=remedy, where=str(file))


def _compare_checksum(file: Path, sha256: str) -> None:
    """Compare with ``FILE.sha256`` beside the file, if there is one. Raises: AceError(BAD_FILE)."""
    beside = file.with_name(f"{file.name}.sha256")
    try:
        wanted = (read_plain(beside, most=_BLOCK).decode("ascii", "replace").split() or [""])[0].lower()
    except FileNotFoundError:
        return
    except OSError as error:
        wanted = f"nothing that can be read ({error.strerror})"
    if sha256 != wanted:
        what, why = f"{file.name} is damaged", f"its SHA-256 is {sha256}, and {beside.name} says {wanted}"
        raise AceError.of(ErrorCode.BAD_FILE, what, why=why, remedy=TAKE_ANOTHER, where=str(file))


@contextlib.contextmanager
def _faults(file: Path) -> Iterator[None]:
    """Turn what reading, unpacking and writing raise into an `AceError`."""
    try:
        yield
    except (ValueError, gzip.BadGzipFile, EOFError, zlib.error) as error:  # also `ArchiveError`, and a name with \0
        what = f"{file.name} is damaged, or not an engine pack"
        raise AceError.of(ErrorCode.BAD_FILE, what, why=str(error), remedy=TAKE_ANOTHER, where=str(file)) from error
    except OSError as error:
        if fault := system_problem(error):
            raise AceError(fault) from error
        code = ErrorCode.SYSTEM if file.is_file() else ErrorCode.NOT_FOUND
        what, where = f"{file.name} cannot be installed", str(error.filename or file)
        remedy = "Look whether the file is there, and whether you may write to the folder of the packs"
        raise AceError.of(code, what, why=error.strerror or str(error), remedy=remedy, where=where) from error


@contextlib.contextmanager
def _opened(
    file: Path, report: Callable[[float], object], is_cancelled: Callable[[], bool]
) -> Iterator[tuple[IO[bytes], _Watched]]:
    """The archive without compression, and the bytes of the file below it."""
    with open_plain(file) as raw:
        read = _Watched(raw, report, is_cancelled)
        with gzip.GzipFile(fileobj=cast("IO[bytes]", read), mode="rb") as plain:
            yield cast("IO[bytes]", plain), read


class _Watched:
    """A file that is hashed as it is read, reports every percent, and ends when somebody cancels."""

    def __init__(self, stream: IO[bytes], report: Callable[[float], object], is_cancelled: Callable[[], bool]) -> None:
        self._stream, self._report, self._is_cancelled = stream, report, is_cancelled
        self.size = os.fstat(stream.fileno()).st_size
        self.sha256, self.blake2b = hashlib.sha256(), hashlib.blake2b()
        self._percent = -1

    def read(self, size: int = -1) -> bytes:
        stop_if(self._is_cancelled)
        block = self._stream.read(size)
        self.sha256.update(block)
        self.blake2b.update(block)
        percent = 100 * self._stream.tell() // max(1, self.size)
        if percent != self._percent:
            self._percent = percent
            self._report(percent / 100)
        return block

    def to_the_end(self) -> None:
        """Read what gzip did not ask for, so that the hashes are those of the whole file."""
        while self.read(_BLOCK):
            pass
