"""Running one case of a benchmark in a process of its own, which is ended with its children."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_child(module: str, arguments: Sequence[str], *, log: Path, limit_s: float, is_own_group: bool = True) -> str:
    """Run ``python -m module arguments`` with one thread, its output in ``log``.

    A child of a child says ``is_own_group=False``: then it ends with the child that started it.

    Returns: How it ended, in words; empty if it ended well.
    """
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=is_own_group
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit_s:g} s"
        finally:
            _end(process, is_own_group=is_own_group)
    return "" if status == 0 else f"ended with status {status}"


def _end(process: subprocess.Popen[bytes], *, is_own_group: bool) -> None:
    """Kill the process, and what is left of a group of its own, however the wait ended."""
    with contextlib.suppress(ProcessLookupError):
        if is_own_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


_ADOPT, _ADOPTS = 36, 37
"""PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER of prctl(2)."""


def adopt_orphans() -> None:
    """From now on, descendants whose parent ends first become children of this process. Linux only.

    A worker that is killed does not wait for what it has started, whose processor time would be nobody's.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT, 1)


def reap_orphans() -> None:
    """Take in adopted processes that have ended: their processor time counts as that of this one's children."""
    adopts = ctypes.c_int()
    if sys.platform == "linux" and ctypes.CDLL(None).prctl(_ADOPTS, ctypes.byref(adopts)) == 0 and adopts.value:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
