"""The folder of captures: one file per capture in the user's cache folder; the least recently used are removed first.

``ACE_STUDIO_CACHE`` names another folder, or ``off``; ``ACE_STUDIO_CACHE_MB`` sets another size.

A file is a zip behind an HMAC of it with a key of the user's own. torch evaluates expressions in a stored graph as
Python, so a file that this user's engine did not write is never read: neither a damaged one nor one that somebody
placed there. The folder is used only if it belongs to the user and nobody else may write into it.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ace_studio.records.private_folder import private_folder, user_cache_folder, user_data_folder
from ace_studio.records.safe_file import write_atomically

FOLDER_VARIABLE = "ACE_STUDIO_CACHE"
SIZE_VARIABLE = "ACE_STUDIO_CACHE_MB"
OFF_WORDS = frozenset({"", "off", "no", "0", "none"})
DEFAULT_LIMIT_BYTES = 2_000_000_000
LARGEST_ENTRY_BYTES = 1_000_000_000
"""Unpacked. Without weights even a capture of thousands of ops is far smaller."""
_SUFFIX = ".capture"
_KEY_NAME = "capture-key"
_MAC_BYTES = 32
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError)


@dataclass(frozen=True)
class CaptureStore:
    """A folder of captures."""

    folder: Path
    secret: bytes
    """The user's key, which is kept outside of the folder."""
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    @classmethod
    def of_user(cls) -> CaptureStore | None:
        """The store that the environment names, or the user's default; None if it is off or cannot be used."""
        named = os.environ.get(FOLDER_VARIABLE)
        if named is not None and named.strip().lower() in OFF_WORDS:
            return None
        folder = Path(named).expanduser() if named else user_cache_folder() / "captures"
        limit = os.environ.get(SIZE_VARIABLE, "")
        try:
            secret = user_key(user_data_folder())
            private_folder(folder)
        except OSError:
            return None
        limit_bytes = int(float(limit) * 1e6) if limit.replace(".", "", 1).isdigit() else DEFAULT_LIMIT_BYTES
        return cls(folder, secret, limit_bytes)

    def read(self, key: str) -> dict[str, bytes] | None:
        """The parts of a capture, which becomes the most recently used; None if it is not there, damaged or foreign."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            content = path.read_bytes()
            if not hmac.compare_digest(self._mac(content[_MAC_BYTES:]), content[:_MAC_BYTES]):
                raise ValueError("it was not written with this user's key")
            with zipfile.ZipFile(io.BytesIO(content[_MAC_BYTES:])) as archive:
                if sum(info.file_size for info in archive.infolist()) > LARGEST_ENTRY_BYTES:
                    raise ValueError("too large")
                parts = {name: archive.read(name) for name in archive.namelist()}
            os.utime(path)
        except _DAMAGED:
            self.drop(key)
            return None
        return parts

    def write(self, key: str, parts: Mapping[str, bytes]) -> None:
        """Keep a capture and remove the least recently used ones beyond the limit. A full disk is no error."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in parts.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)  # without the time of day
        if packed.tell() > self.limit_bytes:
            return
        with suppress(OSError):  # a full disk
            write_atomically(self._path(key), self._mac(packed.getvalue()) + packed.getvalue())
            self._make_room()

    def drop(self, key: str) -> None:
        """Remove a capture."""
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def _mac(self, content: bytes) -> bytes:
        return hmac.digest(self.secret, content, hashlib.sha256)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _make_room(self) -> None:
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError):  # another process removed it
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        left = sum(size for _, size, _ in found) - self.limit_bytes
        for _, size, path in sorted(found):
            if left <= 0:
                break
            path.unlink(missing_ok=True)
            left -= size


def user_key(folder: Path) -> bytes:
    """The key that stored captures are signed with, made at the first use. Raises: OSError if it cannot be kept."""
    path = private_folder(folder) / _KEY_NAME
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_MAC_BYTES))
    key = path.read_bytes()
    if len(key) != _MAC_BYTES:  # another process is writing it, or a full disk cut it
        raise OSError(f"{path} holds no key")
    return key
