"""Running one case of a benchmark in a process of its own, which is ended with its children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_child(module: str, arguments: Sequence[str], *, log: Path, limit_s: float) -> str:
    """Run ``python -m module arguments`` with one thread, its output in ``log``.

    Returns: How it ended, in words; empty if it ended well.
    """
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit_s:g} s"
        finally:
            _end(process)
    return "" if status == 0 else f"ended with status {status}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process group, however the wait ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
