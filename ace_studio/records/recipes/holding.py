"""One writer of a recipe at a time: whoever changes the file holds it, and the next one is told who that is."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.roots import is_for_others, steady_folder
from ace_studio.records.safe_file import decode_plain, read_plain
from ace_studio.records.scratch import is_alive, process_mark

WAIT_S = 0.3
"""A save takes milliseconds; a command may hold the file for as long as it works on it."""
_LARGEST_BYTES = 10_000


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a file; stored beside it while it is held."""

    process: str
    """As `process_mark` says it."""
    machine: str
    user: str
    since: str
    """ISO 8601, UTC."""


@contextmanager
def holding(path: Path | None, *, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold a recipe from before it is read until it is written; None: there is none to hold.

    In a folder that cannot be written nothing is held: the save fails there anyway.

    Raises: AceError(RECIPE) if another process holds it for longer than ``wait_s``.
    """
    if path is None or not path.parent.is_dir():
        yield
        return
    target = path if is_for_others(path) else path.resolve()
    with steady_folder(target.parent) as folder:
        note = folder / f".{target.name}.held"
        until_s = time.monotonic() + wait_s
        while (is_ours := _take(note)) is False:
            if time.monotonic() > until_s:
                raise _held(target, _read(note))
            time.sleep(0.02)
        try:
            yield
        finally:
            if is_ours:
                note.unlink(missing_ok=True)


def _take(note: Path) -> bool | None:
    """Whether the file is ours now; None if nothing can be written there, which the save will tell."""
    holder = _read(note)
    if holder is not None and holder.machine == socket.gethostname() and not is_alive(holder.process):
        with suppress(OSError):
            note.unlink()  # that process was killed
    user = ""
    with suppress(KeyError, ImportError, OSError):
        user = getpass.getuser()
    ours = Holder(
        process=process_mark(os.getpid()),
        machine=socket.gethostname(),
        user=user,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    try:
        with note.open("xb") as stream:
            stream.write(msgspec.json.encode(ours))
    except FileExistsError:
        return False
    except OSError:
        return None
    return True


def _read(note: Path) -> Holder | None:
    with suppress(OSError, msgspec.DecodeError):
        return decode_plain(read_plain(note, most=_LARGEST_BYTES), Holder)
    return None


def _held(path: Path, holder: Holder | None) -> AceError:
    who = "another process"
    if holder is not None:
        process = holder.process.partition(".")[0]
        who = f"process {process} of user {holder.user or 'unknown'} on {holder.machine}, since {holder.since}"
    return AceError.of(
        ErrorCode.RECIPE,
        f"{path.name} is being changed by somebody else",
        why=f"it is held by {who}",
        remedy=f"Try again when that has ended; nothing was written. If nothing is, remove .{path.name}.held",
        where=str(path),
    )
