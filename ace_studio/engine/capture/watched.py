"""A rung at work: its time limit, what it is busy with, and what the parent process must know of it.

Why rungs share one process: a process of its own for every rung would import torch, load the model and run it eagerly
once per rung, which takes longer than most captures; a forked child would inherit the locks of OpenMP's threads in an
unknown state, does not exist on Windows, and could hand a program back only through a file. So the ladder runs in the
worker, and only a rung that goes wrong costs a process: it says when it starts and how long it may take
(`AttemptStarted`). A slow rung is interrupted here, by `limit`. One that does not react, or takes the process with it,
is noticed by the parent (`ace_studio.jobs.rescue`), which ends the process group and repeats the request in a new
worker with that rung noted as given up. The parent does so as well after a rung that was interrupted, because that
may have happened in the middle of an import or of a change to torch's state, and the rungs after it would fail for
no reason of theirs. Without a parent (`ace_studio.compile`) only the limit inside holds, and the process is shared.
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
    """Run the block, which traces, under the limit, and say meanwhile what it is busy with.

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
