"""Watches a capture attempt: its time limit, reports of what it is busy with, and messages to the parent process.

Why attempts share one process: a process for every attempt would import torch, load the model and run it eagerly once
more, which takes longer than most captures; a forked child would inherit the locks of OpenMP's threads in an unknown
state, does not exist on Windows, and could hand a program back only through a file. So all attempts run in the worker,
and only one that goes wrong costs a process. Each reports when it starts and how long it may take (`AttemptStarted`). A
slow one is interrupted here, by `limit`. One that does not react, or ends the process, is noticed by the parent
(`ace_studio.jobs.rescue`), which ends the process group and repeats the request in a new worker with that attempt noted
as given up. The parent also does so after an interrupted attempt, because the interruption may have come in the middle
of an import or of a change to torch's state, and later attempts would fail for no reason of theirs. Without a parent
(`ace_studio.compile`) only the limit inside holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from ace_studio.engine.capture.heartbeat import heartbeat
from ace_studio.engine.capture.limit import interruptible
from ace_studio.engine.progress import Reporter
from ace_studio.engine.torch_private.dynamo import load_tracers
from ace_studio.records.messages import AttemptStarted


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
