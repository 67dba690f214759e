"""The graphs of past runs, one file per fingerprint, so that a run can be looked at again as it was."""

from __future__ import annotations

import threading
import zlib
from pathlib import Path

import msgspec

from ace_studio.records.graph import GraphTable
from ace_studio.records.results import CaptureReport
from ace_studio.records.safe_file import LARGEST_KEPT_BYTES, read_plain, write_atomically

KEPT = 40
"""The newest graphs stay."""


class KeptGraph(msgspec.Struct, frozen=True):
    """A captured graph and the text of the user's files that its ops point to."""

    graph: GraphTable
    sources: dict[str, str]
    capture: CaptureReport | None = None
    """How it was captured; None in a file of an earlier version."""


class KeptGraphs:
    """A folder of compressed graphs. What cannot be written or read is missing; the runs do not depend on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, fingerprint: str, kept: KeptGraph) -> threading.Thread | None:
        """Write a graph in a thread of its own, because a large one takes seconds; None if it is there already."""
        path = self._path(fingerprint)
        if path.exists():
            return None
        thread = threading.Thread(target=self._write, args=(path, kept))  # the window may close meanwhile
        thread.start()
        return thread

    def find(self, fingerprint: str) -> KeptGraph | None:
        """The graph of a fingerprint, if it was kept."""
        try:
            packed = zlib.decompressobj()
            content = packed.decompress(read_plain(self._path(fingerprint)), LARGEST_KEPT_BYTES)
            return msgspec.msgpack.decode(content, type=KeptGraph) if packed.eof else None
        except (OSError, zlib.error, msgspec.DecodeError, RecursionError):
            return None

    def _path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.msgpack.z"

    def _write(self, path: Path, kept: KeptGraph) -> None:
        try:
            write_atomically(path, zlib.compress(msgspec.msgpack.encode(kept), 1), makes_folder=True)
            oldest = sorted(self._folder.glob("*.msgpack.z"), key=lambda one: one.stat().st_mtime)[:-KEPT]
            for each in oldest:
                each.unlink(missing_ok=True)
        except OSError:
            return  # the graph of a past run is a convenience
