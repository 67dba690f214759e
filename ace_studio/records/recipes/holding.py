"""One writer of a recipe at a time: whoever changes the file holds it, and the next one is told who that is."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.private_folder import user_name
from ace_studio.records.roots import is_for_others, steady_folder
from ace_studio.records.safe_file import decode_plain, read_plain
from ace_studio.records.scratch import is_alive, process_mark

WAIT_S = 0.3
"""A save takes milliseconds; a command may hold the file for as long as it works on it."""


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
        is_ours = _is_taken(note, target, until_s=time.monotonic() + wait_s)
        try:
            yield
        finally:
            if is_ours:
                note.unlink(missing_ok=True)


def _is_taken(note: Path, target: Path, *, until_s: float) -> bool:
    machine = socket.gethostname()
    since = datetime.now(UTC).isoformat(timespec="seconds")
    ours = Holder(process=process_mark(os.getpid()), machine=machine, user=user_name(), since=since)
    while True:
        holder = None
        with suppress(OSError, msgspec.DecodeError):
            holder = decode_plain(read_plain(note), Holder)
        try:
            if holder is not None and holder.machine == machine and not is_alive(holder.process):
                note.unlink(missing_ok=True)  # that process was killed
            with note.open("xb") as stream:
                stream.write(msgspec.json.encode(ours))
        except FileExistsError:
            if time.monotonic() > until_s:
                raise _held(target, holder) from None
            time.sleep(0.02)
        except OSError:
            return False
        else:
            return True


def _held(path: Path, holder: Holder | None) -> AceError:
    who = "another process"
    if holder is not None:
        number = holder.process.partition(".")[0]
        who = f"process {number} of user {holder.user} on {holder.machine}, since {holder.since}"
    remedy = f"Try again when that has ended; nothing was written. If nothing is, remove .{path.name}.held"
    what = f"{path.name} is being changed by somebody else"
    return AceError.of(ErrorCode.RECIPE, what, why=f"it is held by {who}", remedy=remedy, where=str(path))
