"""The temporary folder of a worker and of all that it starts: one for each, gone when the worker is.

The parent makes it and removes it. If the parent was killed, the guard does, and else the next start: the folder's name
says whose it is. Standard library only: boot imports it.
"""

import getpass
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SHARED_VARIABLE = "ACE_STUDIO_SHARED_TMP"
"""Tells a worker the temporary folder of the user, for what several workers share."""
_PREFIX = "ace-w"
_PROBE_BYTES = 100_000


def make_scratch(environment: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    """Make the temporary folder of a new worker; returns it and the variables that name it.

    Compiled code that libraries keep in the temporary folder on purpose stays where it was, if it can be written there.

    Args:
        environment: Of the new worker; its ``TMPDIR`` is where the folder is made.

    Raises: OSError if nothing can be written there.
    """
    base = Path(environment.get("TMPDIR", "") if os.name == "posix" else "")
    if not base.is_absolute() or not base.is_dir():
        base = Path(tempfile.gettempdir())
    _remove_orphans(base)
    scratch = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{process_mark(os.getpid())}-", dir=base))
    shared = environment.get(SHARED_VARIABLE) or str(base)
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)) | {SHARED_VARIABLE: shared}
    kept = environment.get("TORCHINDUCTOR_CACHE_DIR") or compiled_code_folder(Path(shared))
    variables["TORCHINDUCTOR_CACHE_DIR"] = kept if _takes_files(Path(kept)) else str(scratch / "compiled")
    return scratch, variables


def _takes_files(folder: Path) -> bool:
    """Whether files can be written there. Torch says of a cache where they cannot that the model has no graph."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            return probe.write(bytes(_PROBE_BYTES)) == _PROBE_BYTES
    except OSError:
        return False


def shared_temporary_folder() -> Path:
    """The temporary folder of the user, also in a worker."""
    return Path(os.environ.get(SHARED_VARIABLE) or tempfile.gettempdir())


def compiled_code_folder(base: Path) -> str:
    """Where torch keeps compiled code, named as it does by default."""
    return str(base / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user_name())))


def user_name() -> str:
    """The name of this user, or its number."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):
        return f"uid_{os.getuid()}" if hasattr(os, "getuid") else "unknown_user"


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
