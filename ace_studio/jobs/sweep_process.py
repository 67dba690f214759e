"""Starts a sweep in a process of its own, reads what it tells, and asks it to stop."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from ace_studio.jobs.autopsy import MISSING_MODULE
from ace_studio.jobs.engine_packs import best_pack
from ace_studio.jobs.launch import BOOT_FILE, LaunchOptions, clean_environment, default_interpreter
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.hosts import NEEDED
from ace_studio.records.sweeps import NEEDED_FOR_SWEEPS, JobAdvanced, SweepAdvanced, SweepEnded, SweepOrder

AnySweepEvent = JobAdvanced | SweepAdvanced | SweepEnded
_MODULE = "ace_studio.sweeps.__main__"
_decoder = msgspec.json.Decoder(AnySweepEvent)
_TAIL_BYTES = 4000
"""Of what the process printed, in the message about its death."""


class SweepProcess:
    """One sweep. ``on_event`` is called in a thread of this object; in any case the last event is a `SweepEnded`."""

    def __init__(self, order: SweepOrder, on_event: Callable[[AnySweepEvent], None]) -> None:
        """Start the process. Raises: OSError if that is not possible."""
        # Dask is in the window's own environment; only the engine needs the user's. A frozen window has no Python.
        self._python = sys.executable
        if getattr(sys, "frozen", False):
            order = replace(order, interpreter=order.interpreter or default_interpreter())
            self._python = pack.python if (pack := best_pack()) else order.interpreter
        self._on_event = on_event
        self._is_stopped = False
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread that reads it
        self._process = subprocess.Popen(
            [self._python, "-P", str(BOOT_FILE), _MODULE],  # its children too are not to import from where it starts
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._printed,
            env=clean_environment(LaunchOptions(interpreter=self._python), os.environ),
            start_new_session=os.name == "posix",  # Ctrl-C in the window's terminal is the window's
        )  # fmt: skip
        self._thread = threading.Thread(target=self._follow, args=(order,), name="ace-sweep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the sweep to end its jobs and to keep what is done; its `SweepEnded` follows. May be called again."""
        self._is_stopped = True
        stdin = self._process.stdin
        if stdin is not None:
            with suppress(OSError):  # it is gone already
                stdin.close()

    def wait(self, timeout_s: float) -> None:
        """Wait until the process has ended; kill it if that takes longer."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(timeout_s)

    def _follow(self, order: SweepOrder) -> None:
        ended = None
        with self._process as process:
            with suppress(OSError, ValueError):  # it died, or was stopped before it began
                if process.stdin is not None:
                    process.stdin.write(msgspec.json.encode(order) + b"\n")
                    process.stdin.flush()
            for line in process.stdout or ():
                event = _decoder.decode(line)
                if isinstance(event, SweepEnded):
                    ended = event
                else:
                    self._on_event(event)
        if ended is None:
            stopped = Problem(code=ErrorCode.CANCELLED, what="The sweep was cancelled")
            ended = SweepEnded(problems=(stopped if self._is_stopped else self._death(process.returncode),))
        self._printed.close()
        self._on_event(ended)

    def _death(self, code: int) -> Problem:
        self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, self._printed.tell() - _TAIL_BYTES))
        printed = self._printed.read().decode(errors="replace").strip()
        last = printed.rpartition("\n")[2]
        if (found := MISSING_MODULE.match(last)) and "." not in found[1]:
            wanted = (*(NEEDED.values() if found[1] in NEEDED else ()), *NEEDED_FOR_SWEEPS)
            install = " ".join([self._python, "-m pip install", *(f"'{text}'" for text in wanted)])
            return Problem(
                code=ErrorCode.NOT_INSTALLED,
                what=f"A sweep needs {found[1]}",
                why=f"{self._python} does not have it",
                remedy=f"Install what a sweep needs there: {install}",
                details=printed,
            )
        return Problem(
            code=ErrorCode.CRASH,
            what="The process of the sweep ended without an answer",
            why=last or f"its exit code is {code}",
            remedy="Continue the sweep: jobs with a result are kept",
            details=printed,
        )
