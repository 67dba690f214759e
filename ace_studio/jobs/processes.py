"""Finding and ending the processes of one worker, wherever they hid. Standard library only: boot imports it.

Every process that a worker starts inherits its mark in the environment. A group can be left with ``setsid`` and a
parent can die, but the environment that a process was started with stays readable (Linux).
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "ACE_STUDIO_WORKER_MARK"
_PROC = Path("/proc")


def kill_group(group: int, *, number: int | None = None) -> None:
    """Send a signal (SIGKILL if none is named) to a process group; nothing happens if it is gone. POSIX only."""
    if os.name != "posix":
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL if number is None else number)


def kill_marked(mark: str, *, spare: int = 0, rounds: int = 3) -> int:
    """SIGKILL every process that was started with this mark, but not this process and not ``spare``; say how many.

    Looks again until a round finds none, because a process may fork while it is being looked for.
    """
    killed = 0
    for _ in range(rounds):
        found = [pid for pid in marked_processes(mark) if pid not in (os.getpid(), spare)]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed += len(found)
        if not found:
            break
        time.sleep(0.01)
    return killed


def marked_processes(mark: str) -> list[int]:
    """Ids of the living processes of this user that were started with this mark; empty where there is no /proc."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for folder in _PROC.glob("[0-9]*"):
        # Those of other users cannot be read, and processes end while we look.
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def oom_kills() -> int:
    """How often the system's out-of-memory killer struck since boot; 0 where nobody counts."""
    with suppress(OSError, ValueError):
        for line in (_PROC / "vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
