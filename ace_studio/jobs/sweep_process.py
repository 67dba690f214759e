"""Starts a sweep in a process of its own, reads what it tells, and asks it to stop."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ace_studio.jobs.launch import LaunchOptions, clean_environment, default_interpreter
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.sweeps import JobAdvanced, SweepAdvanced, SweepEnded, SweepOrder

AnySweepEvent = JobAdvanced | SweepAdvanced | SweepEnded
_MODULE = "ace_studio.sweeps"
_decoder = msgspec.json.Decoder(AnySweepEvent)
_TAIL_BYTES = 4000
"""Of what the process printed, in the message about its death."""


class SweepProcess:
    """One sweep. ``on_event`` is called in a thread of this object; in any case the last event is a `SweepEnded`."""

    def __init__(self, order: SweepOrder, on_event: Callable[[AnySweepEvent], None]) -> None:
        """Start the process. Raises: OSError if that is not possible."""
        # Dask is in the window's own environment; only the engine needs the user's.
        python = default_interpreter() if getattr(sys, "frozen", False) else sys.executable
        self._on_event = on_event
        self._is_stopped = False
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread that reads it
        self._process = subprocess.Popen(
            [python, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env=clean_environment(LaunchOptions(interpreter=python), os.environ),
            start_new_session=os.name == "posix",  # Ctrl-C in the window's terminal is the window's
        )
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
        return Problem(
            code=ErrorCode.CRASH,
            what="The process of the sweep ended without an answer",
            why=printed.rpartition("\n")[2] or f"its exit code is {code}",
            remedy="Continue the sweep: jobs with a result are kept",
            details=printed,
        )
