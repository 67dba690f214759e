"""Reports once a second which line and module a capture attempt is tracing.

A thread reads the stack of the thread that traces, in less than a millisecond each time. While native code holds
Python's lock this thread cannot run either; then the last report stays.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn

from ace_studio.engine.capture.limit import interruptible
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.dynamo import StackLook, load_tracers, look_at_stack, readable_path
from ace_studio.engine.user_files import is_user_file
from ace_studio.records.messages import AttemptStarted, Phase, Progress

QUIET_S = 2.0
"""Time before the first report; most attempts end sooner."""
PULSE_S = 1.0
RECENT_LOOKS = 5


@contextmanager
def heartbeat(method: str, *, module: nn.Module, reporter: Reporter) -> Iterator[None]:
    """Report once a second what the calling thread traces, while the block runs."""
    beat = Heartbeat(method, module=module, reporter=reporter, thread_id=threading.get_ident())
    beat.start()
    try:
        yield
    finally:
        beat.end()


class Heartbeat(threading.Thread):
    """Reads one thread's stack and reports what it is busy with."""

    def __init__(self, method: str, *, module: nn.Module, reporter: Reporter, thread_id: int) -> None:
        super().__init__(daemon=True, name="capture-heartbeat")
        self._method = method
        self._module = module
        self._reporter = reporter
        self._thread_id = thread_id
        self._callers = tuple(frame for frame, _ in traceback.walk_stack(sys._current_frames().get(thread_id)))
        """Frames outside the block, which are not part of the work; kept alive, so that no id is used again."""
        self._outer = frozenset(map(id, self._callers))
        self._started_s = time.monotonic()
        self._looks: deque[StackLook] = deque(maxlen=RECENT_LOOKS)
        self._paths: dict[int, str] = {}
        self._is_over = threading.Event()

    def run(self) -> None:
        """Look and report until `end`."""
        pause_s = QUIET_S
        while not self._is_over.wait(pause_s):
            pause_s = PULSE_S
            self._looks.append(self.look())
            pulse = Progress(job=self._reporter.job, phase=Phase.CAPTURE, detail=self.words(), is_pulse=True)
            if not self._is_over.is_set():
                self._reporter.tell(pulse)

    def end(self) -> None:
        """Stop reporting."""
        self._is_over.set()
        self._callers = ()

    def look(self) -> StackLook:
        """What the thread is busy with now."""
        frame = sys._current_frames().get(self._thread_id)
        return look_at_stack(frame, is_user_file=is_user_file, outer=self._outer)

    def words(self) -> str:
        """``export: 12 s, tracing blocks.3.conv, model.py:41``."""
        return ", ".join([f"{self._method}: {time.monotonic() - self._started_s:.0f} s", *self._doing()])

    def _doing(self) -> list[str]:
        if not self._looks:
            return []
        last = self._looks[-1]
        module = self._path_of(last.module) or readable_path(last.module_path)
        is_size = sum(one.is_in_size_arithmetic for one in self._looks) * 2 > len(self._looks)
        verb = "working out symbolic sizes" + (" in" if module else "") if is_size else "tracing" if module else ""
        doing = f"{verb} {module}".strip()
        return [part for part in (doing, f"{Path(last.file).name}:{last.line}" if last.file else "") if part]

    def _path_of(self, module: nn.Module | None) -> str:
        if module is None:
            return ""
        if id(module) not in self._paths:
            self._paths = {id(child): path for path, child in self._module.named_modules()}
            self._paths.setdefault(id(module), "")  # a tracer may run a module that it made, which has no name
        return self._paths[id(module)]


@contextmanager
def watched_attempt(name: str, limit_s: float, *, module: nn.Module, reporter: Reporter) -> Iterator[None]:
    """Run the block, which traces, under the time limit, and report meanwhile what it is busy with.

    Raises: CaptureTimeoutError or CaptureInterruptedError out of the block.
    """
    load_tracers()
    reporter.emit(AttemptStarted(job=reporter.job, name=name, limit_s=limit_s))
    try:
        with (
            heartbeat(name, module=module, reporter=reporter),
            interruptible(limit_s, should_stop=lambda: reporter.is_cancelled),
        ):
            yield
    finally:
        # What follows runs the model and the graph, and takes as long as they do.
        reporter.tell(AttemptStarted(job=reporter.job, name=name, limit_s=None))
