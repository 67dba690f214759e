"""The temporary folder of a worker and of all that it starts: one for each, gone when the worker is.

The parent makes it and removes it. If the parent was killed, the guard does, and else the next start: the folder's name
says whose it is. Standard library only: boot imports it.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ace_studio.records.private_folder import library_caches, temporary_base

_PREFIX = "ace-w"


def make_scratch(environment: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    """Make the temporary folder of a new worker; returns it and the variables that name it and `library_caches`.

    Args:
        environment: Of the new worker; its ``TMPDIR`` is where the folder is made.

    Raises: OSError if nothing can be written there.
    """
    base = temporary_base(environment.get("TMPDIR", "") if os.name == "posix" else "")
    _remove_orphans(base)
    scratch = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{process_mark(os.getpid())}-", dir=base))
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    return scratch, variables | library_caches(environment, shared=base, instead=scratch)


def remove_scratch(scratch: Path) -> None:
    """Remove a temporary folder with all that is in it, whatever its permissions are now."""
    for _ in range(2):
        shutil.rmtree(scratch, ignore_errors=True)
        if not scratch.exists():
            return
        for folder, _folders, _files in os.walk(scratch):
            with suppress(OSError):
                Path(folder).chmod(0o700)


def _remove_orphans(base: Path) -> None:
    """Remove the folders of this user whose parent process was killed together with the guard."""
    with suppress(OSError):
        for found in base.glob(f"{_PREFIX}*-*"):
            owner = found.name.removeprefix(_PREFIX).rpartition("-")[0]
            parts = owner.split(".")
            with suppress(OSError):
                is_ours = not hasattr(os, "getuid") or found.lstat().st_uid == os.getuid()
                same_machine = len(parts) == 3 and parts[2] == _namespace() and parts[0].isdigit()
                if is_ours and same_machine and found.is_dir() and not is_alive(owner):
                    remove_scratch(found)


def process_mark(pid: int) -> str:
    """A process as ``pid.start.namespace``: numbers of processes are used again. Start is "" if there is none."""
    start = ""
    if sys.platform == "linux":
        # Ticks since the machine started, which do not change when the clock is set.
        with suppress(OSError, IndexError):
            start = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    else:
        import psutil  # noqa: PLC0415 - not needed for the first picture of the window

        with suppress(psutil.Error):
            start = str(int(psutil.Process(pid).create_time()))
    return f"{pid}.{start}.{_namespace()}"


def is_alive(mark: str) -> bool:
    """Whether the process of a mark goes on; another one that has only got its number does not count."""
    pid = mark.partition(".")[0]
    return pid.isdecimal() and process_mark(int(pid)) == mark


def _namespace() -> str:
    """Containers may share a temporary folder; their numbers of processes say nothing about each other."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").stat().st_ino % 10**6)
    return "0"
