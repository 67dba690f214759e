"""Finds and ends every process that a worker started. Standard library only: boot imports it.

Every process that a worker starts inherits its mark in the environment. A process can leave its group with ``setsid``
and outlive its parent, but the environment that it was started with stays readable (Linux).
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "ACE_STUDIO_WORKER_MARK"
_PROC = Path("/proc")


def kill_group(group: int) -> None:
    """SIGKILL a process group; nothing happens if it is gone. POSIX only."""
    if os.name != "posix":
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def kill_marked(mark: str) -> None:
    """SIGKILL every process that was started with this mark, except this process.

    Searches up to three times, because a process may fork during the search.
    """
    for _ in range(3):
        pids = [pid for pid in marked_processes(mark) if pid != os.getpid()]
        if not pids:
            return
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


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
    """Kills by the system's out-of-memory killer since boot; 0 where the system does not count them."""
    with suppress(OSError, ValueError):
        for line in (_PROC / "vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
