"""The folder of captures: one file per capture in the user's cache folder; the least recently used are removed first.

``ACE_STUDIO_CACHE`` names another folder, or ``off``; ``ACE_STUDIO_CACHE_MB`` sets another size. A file is a zip whose
checksums reveal damage. Its content becomes a program again, so the folder is used only if it belongs to the user and
nobody else may write into it.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ace_studio.records.safe_file import write_atomically

FOLDER_VARIABLE = "ACE_STUDIO_CACHE"
SIZE_VARIABLE = "ACE_STUDIO_CACHE_MB"
OFF_WORDS = frozenset({"", "off", "no", "0", "none"})
DEFAULT_LIMIT_BYTES = 2_000_000_000
LARGEST_ENTRY_BYTES = 1_000_000_000
"""Unpacked. Without weights even a capture of thousands of ops is far smaller."""
_SUFFIX = ".capture"
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, RuntimeError)


@dataclass(frozen=True)
class CaptureStore:
    """A folder of captures."""

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    @classmethod
    def of_user(cls) -> CaptureStore | None:
        """The store that the environment names, or the user's default; None if it is off or cannot be used."""
        named = os.environ.get(FOLDER_VARIABLE)
        if named is not None and named.strip().lower() in OFF_WORDS:
            return None
        folder = Path(named).expanduser() if named else user_cache_folder() / "captures"
        limit = os.environ.get(SIZE_VARIABLE, "")
        store = cls(folder, int(float(limit) * 1e6) if limit.replace(".", "", 1).isdigit() else DEFAULT_LIMIT_BYTES)
        return store if store._is_usable() else None

    def read(self, key: str) -> dict[str, bytes] | None:
        """The parts of a capture, which becomes the most recently used; None if it is not there or damaged."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            with zipfile.ZipFile(path) as archive:
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
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        if packed.tell() > self.limit_bytes:
            return
        with suppress(OSError):  # a full disk
            write_atomically(self._path(key), packed.getvalue())
            self._make_room()

    def drop(self, key: str) -> None:
        """Remove a capture."""
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

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

    def _is_usable(self) -> bool:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = self.folder.stat()
        except OSError:
            return False
        if os.name != "posix":
            return True
        return status.st_uid == os.getuid() and not status.st_mode & 0o022


def user_cache_folder() -> Path:
    """The user's cache folder. The engine's interpreter may lack platformdirs, which knows it."""
    try:
        import platformdirs  # noqa: PLC0415 - optional here
    except ImportError:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ace-studio"
    return platformdirs.user_cache_path("ace-studio", appauthor=False)
