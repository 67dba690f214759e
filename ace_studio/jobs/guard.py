"""Ends a worker with its parent, even if a job holds the interpreter lock, forks and ignores signals.

Two independent ways, standard library only. The kernel kills the worker when the thread that started it ends (Linux).
And a small guard process, forked before anything is imported, waits for the end of a pipe whose other end only the
parent holds; then it kills the worker's process group and every
process that carries the worker's mark, and removes the worker's temporary folder.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ace_studio.jobs.processes import kill_group, kill_marked
from ace_studio.records.scratch import remove_scratch

_PR_SET_PDEATHSIG = 1


def die_with_parent(config: Mapping[str, Any]) -> None:
    """Make this process, and all it starts, end with its parent.

    Args:
        config: ``lifeline`` is the descriptor of the pipe's reading end (absent on Windows, where the worker itself
            notices that its channel ended); ``mark`` is the worker's mark; ``scratch`` its temporary folder.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # If memory runs out, the kernel should take the engine and not the window.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")
    if os.name == "posix":
        _forbid_core_dumps()
    if os.name == "posix" and "lifeline" in config:
        _fork_guard(int(config["lifeline"]), str(config["mark"]), str(config.get("scratch", "")))


def _forbid_core_dumps() -> None:
    """A crash with a model in memory would fill the disk with gigabytes that nobody reads."""
    import resource  # noqa: PLC0415 - does not exist on Windows

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _fork_guard(lifeline: int, mark: str, scratch: str) -> None:
    group = os.getpgrp()
    if os.fork() != 0:
        os.close(lifeline)
        return
    try:
        # A group of its own, so that it survives the end of the worker's group, which it may have to bring about.
        os.setpgid(0, 0)
        _keep_only(lifeline)
        os.read(lifeline, 1)
        kill_group(group)
        kill_marked(mark)
        if scratch:
            remove_scratch(Path(scratch))
    finally:
        os._exit(0)


def _keep_only(descriptor: int) -> None:
    """Close all others: holding the worker's channel or its output open would hide its end from the parent."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    highest = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, min(highest if highest > 0 else 4096, 65536))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
