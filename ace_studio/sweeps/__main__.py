"""A sweep in a process of its own: ``python jobs/boot.py ace_studio.sweeps.__main__``, which the window starts.

The first line of stdin is a `SweepOrder`, each line of stdout is an event, and the last one is a `SweepEnded`; all of
them are JSON. When stdin closes, because the window wants that or is gone, the sweep stops as after Ctrl-C.
"""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.sweep_file import sweep_jobs
from ace_studio.records.sweeps import SweepEnded, SweepEvent, SweepOrder
from ace_studio.sweeps.running import run_sweep


def main() -> None:
    """Do what stdin says, and tell it on stdout."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a child may have been told to ignore it
    told = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anybody else prints is no event

    def tell(event: SweepEvent | SweepEnded) -> None:
        with suppress(OSError):  # the window is gone: the sweep stops, and writes what it has
            told.write(msgspec.json.encode(event) + b"\n")

    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=SweepOrder)
    threading.Thread(target=_interrupt_at_end, args=(sys.stdin.buffer,), daemon=True).start()
    try:
        tell(_run(order, tell))
    except AceError as error:
        tell(SweepEnded(problems=error.problems))
    except KeyboardInterrupt:
        tell(SweepEnded(problems=(Problem(code=ErrorCode.CANCELLED, what="The sweep was cancelled"),)))


def _interrupt_at_end(stream: BinaryIO) -> None:
    while stream.read(4096):
        pass
    _thread.interrupt_main()


def _run(order: SweepOrder, tell: Callable[[SweepEvent], None]) -> SweepEnded:
    jobs = sweep_jobs(order.sweep, Path(order.folder), name="the sweep", texts=order.texts)
    return SweepEnded(report=run_sweep(jobs, Path(order.out), order, tell))
