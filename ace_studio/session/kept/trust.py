"""The files that the user trusts to run, by SHA-256; stored per user, never in a project."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, Problem, explained
from ace_studio.records.messages import FileReport
from ace_studio.records.private_folder import fault_of
from ace_studio.records.safe_file import decode_plain, read_plain, write_private
from ace_studio.records.sending import host_of
from ace_studio.session.document import Document

FOLDER = "folder:"
"""Begins the ``sha256`` of a trusted folder, which has no content of its own; its path follows."""


class TrustedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One trusted file, as it was when the user trusted it."""

    sha256: str
    path: str
    date: str
    """ISO 8601, UTC."""
    identity: str = ""
    """Of a folder: device, inode, owner and permissions. One that was deleted and made anew is another one."""


class TrustStore:
    """The list of trusted files, kept as JSON. A list that is damaged, or that others may write, trusts nothing."""

    def __init__(self, path: Path, *, today: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._today = today
        self._read_files: dict[str, TrustedFile] = {}
        self._stamp: tuple[int, ...] | None = None
        self._for_session: dict[str, str] = {}
        """Contents that are trusted until the window closes -> their file, if that is so for its folder's sake."""

    @property
    def _files(self) -> dict[str, TrustedFile]:
        """What the list holds now: another window, or the command line, may have changed it."""
        stamp: tuple[int, ...] = ()
        with suppress(OSError):
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._read_files, self._stamp = {file.sha256: file for file in _read(self._path)[0]}, stamp
        return self._read_files

    def is_trusted(self, sha256: str) -> bool:
        """Whether the user trusts this content."""
        if sha256 in self._files:
            return True
        covered = self._for_session.get(sha256)
        return covered is not None and (not covered or bool(self.folders_of(covered)))

    def folders_of(self, path: str) -> tuple[str, ...]:
        """The folders that hold the file and that the user trusts with all that is and will be in them."""
        place = Path(path).resolve()
        inside = {str(each) for each in (place, *place.parents)}
        named = [file for key, file in self._files.items() if key.startswith(FOLDER) and file.path in inside]
        return tuple(file.path for file in named if _is_unchanged(file, place))

    def trust_folder(self, folder: Path) -> None:
        """Remember that everything in the folder may run, which its owner put there.

        Raises: AceError as `trust`; AceError(USAGE) if also others than its owner could put something there.
        """
        place = folder.resolve()
        what = "This folder cannot be trusted with all that will be in it"
        remedy = "Trust the file alone"
        with explained(ErrorCode.USAGE, what, remedy=remedy, where=place):
            if fault := fault_of(place, owners=(place.stat().st_uid,)):
                raise PermissionError(errno.EPERM, fault)
            self._add(str(place), f"{FOLDER}{place}", identity=_identity(place))

    def trust_covered(self, path: str, sha256: str) -> bool:
        """Trust a content for as long as its folder is. Returns: whether the content is trusted.

        Trust in a folder lets code run; it sends nothing anywhere.
        """
        if not host_of(sha256) and not self.is_trusted(sha256) and self.folders_of(path):
            self._for_session[sha256] = path
        return self.is_trusted(sha256)

    def sends_to(self, host: str, folder: str) -> bool:
        """Whether the user let files of this folder go to a machine, whichever they were."""
        return any(host_of(key) == host and one.path == folder for key, one in self._files.items())

    @property
    def sendings(self) -> tuple[str, ...]:
        """What the user let be sent, in the place of hashes."""
        return tuple(key for key in self.hashes if host_of(key))

    @property
    def files(self) -> tuple[TrustedFile, ...]:
        """Everything trusted, oldest first."""
        return tuple(self._files.values())

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of everything trusted."""
        for_now = (sha256 for sha256 in self._for_session if self.is_trusted(sha256))
        return (*(sha256 for sha256 in self._files if not sha256.startswith(FOLDER)), *for_now)

    def trust(self, path: str, sha256: str, *, keep: bool = True) -> None:
        """Remember that this content may run; without ``keep`` until the window closes.

        Raises: AceError(NOT_FOUND) if the list cannot be written, AceError(BAD_FILE) if it could not be read and was
            put aside; then the file is not trusted.
        """
        if not sha256 or sha256 in self._files:
            return
        if not keep:
            self._for_session[sha256] = ""
            return
        self._add(path, sha256)

    def _add(self, path: str, sha256: str, *, identity: str = "") -> None:
        date = self._today().isoformat(timespec="seconds")
        file = TrustedFile(sha256=sha256, path=path, date=date, identity=identity)
        self._write([*(one for one in self._files.values() if one.sha256 != sha256), file])

    def revoke(self, sha256: str) -> None:
        """Forget that this content may run. Raises: AceError as `trust`."""
        self._for_session.pop(sha256, None)
        self._write([file for file in self._files.values() if file.sha256 != sha256])

    def _write(self, files: list[TrustedFile]) -> None:
        what = "The list of trusted files could not be saved"
        remedy = "Make the folder writable, or trust the file for one run with --trust on the command line"
        with explained(ErrorCode.NOT_FOUND, what, remedy=remedy, where=self._path):
            if fault := _read(self._path)[1]:
                aside = self._path.with_name(self._path.name + ".bad")
                self._path.replace(aside)
                remedy = f"Trust again what you still trust. The old list is {aside}"
                what = "The list of trusted files could not be read, and a new one is begun"
                raise AceError.of(ErrorCode.BAD_FILE, what, why=fault, remedy=remedy, where=str(self._path))
            write_private(self._path, msgspec.json.format(msgspec.json.encode(files), indent=2), mode=0o600)


def _identity(folder: Path) -> str:
    """What tells a folder from another one of its name; empty if it is not there."""
    try:
        status = folder.lstat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{status.st_uid}:{status.st_mode:o}"


def _is_unchanged(folder: TrustedFile, place: Path) -> bool:
    """Whether a trusted folder is the one that was trusted, and only its owner can have put the file there."""
    now = _identity(Path(folder.path))
    return folder.identity == now != "" and not fault_of(place, owners=(int(now.split(":")[2]),))


def _read(path: Path) -> tuple[list[TrustedFile], str]:
    """What the list holds, and why it trusts nothing if it cannot be used."""
    try:
        status = path.stat()
        if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            return [], "other users may have written it"
        return decode_plain(read_plain(path), list[TrustedFile]), ""
    except (FileNotFoundError, NotADirectoryError):
        return [], ""
    except (OSError, msgspec.DecodeError) as error:
        return [], str(error)


def files_to_trust(document: Document) -> Iterator[tuple[str, str]]:
    """Path and SHA-256 of the files to trust: those of the inspected file, and those that the engine asked trust for.

    Only contents that were shown to the user. Trust in a file that changed since then is asked for again.
    """
    if document.file is not None:
        yield from contents_of(document.file)
    for problem in document.problems:
        if problem.code is ErrorCode.UNTRUSTED and (sha256 := hash_in(problem)):
            yield problem.where, sha256


def contents_of(report: FileReport) -> tuple[tuple[str, str], ...]:
    """Path and SHA-256 of the code that opening a file runs; of the file itself where it runs none."""
    return tuple((file.path, file.sha256) for file in report.files) or ((report.path, report.sha256),)


def hash_in(problem: Problem) -> str:
    """The hash that the engine asked trust for; empty if the problem names none."""
    return next((line[7:].strip() for line in problem.details.splitlines() if line.startswith("sha256:")), "")
