"""What the engine process tells the window while it works."""

from __future__ import annotations

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages.phases import Phase
from ace_studio.records.messages.reports import EnvironmentReport, FileReport, ModuleCalls, TargetRefusals
from ace_studio.records.results import Baseline, CaptureAttempt, CaptureReport, OpSensitivity, Result, TargetRun
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.tensors import TensorSpec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all events; ``job`` is empty for those that answer no request."""

    job: str = ""


class WorkerReady(Event, frozen=True, kw_only=True):
    """The engine process is up and has imported what it needs."""

    protocol: int
    pid: int
    python: str
    torch: str
    seconds: float


class Progress(Event, frozen=True, kw_only=True):
    """Where the job is. ``fraction`` of this phase in 0..1, or None if nobody can tell."""

    phase: Phase
    detail: str = ""
    fraction: float | None = None
    is_pulse: bool = False
    """Said once a second while one step goes on: a log may leave most of them out."""


class LogLine(Event, frozen=True, kw_only=True):
    """A line that the user's code, torch or we printed."""

    text: str
    stream: str = "log"
    """``log``, ``stdout`` or ``stderr``."""


class FileInspected(Event, frozen=True, kw_only=True):
    """Answer to InspectRequest."""

    report: FileReport


class EnvironmentFound(Event, frozen=True, kw_only=True):
    """Answer to DoctorRequest."""

    report: EnvironmentReport


class AttemptStarted(Event, frozen=True, kw_only=True):
    """A rung of the ladder is at work; if the process dies or hangs before its `AttemptEnded`, the rung did it."""

    name: str
    limit_s: float | None = None
    """Seconds from now after which it has hung; None while its graph is compared with eager, which has no limit."""


class AttemptEnded(Event, frozen=True, kw_only=True):
    """One rung of the ladder ended."""

    outcome: CaptureAttempt


class ModelCaptured(Event, frozen=True, kw_only=True):
    """The graph is there."""

    fingerprint: str
    capture: CaptureReport
    graph: GraphTable
    sources: dict[str, str] = {}
    """Path -> text of the user's files that ops point to, so that the window need not read them."""
    refusals: tuple[TargetRefusals, ...] = ()
    """Of every target that is available, in the order of the registry."""


class SensitivityFound(Event, frozen=True, kw_only=True):
    """What is known of the sensitivity of the ops so far; a later one replaces it."""

    fingerprint: str
    ops: tuple[OpSensitivity, ...]
    samples_done: int
    samples: int
    forwards: float
    """Cost until now, in passes forward over the samples."""
    is_complete: bool = False
    notes: tuple[str, ...] = ()
    """What could not be found in the short way, and what that cost."""


class FixTried(Event, frozen=True, kw_only=True):
    """One fix was tried."""

    fix: FixReport


class InputsCaught(Event, frozen=True, kw_only=True):
    """Answer to CatchRequest."""

    path: str
    """The ``inputs.json`` that was written, which a recipe can name; empty if no call was kept."""
    module: str = ""
    """Class of the module that was chosen."""
    seen: int = 0
    """Calls of it."""
    kept: int = 0
    bytes: int = 0
    """Of the tensors that were kept."""
    modules: tuple[ModuleCalls, ...] = ()
    """All that were called, the outermost first, to choose from."""
    rows: tuple[dict[str, TensorSpec], ...] = ()
    """What was kept, as rows of the shape table that name the file's tensors; a row's paths are absolute."""
    problem: Problem | None = None
    """What ended the script before its end; what was caught until then is kept."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""


class PruningPreviewed(Event, frozen=True, kw_only=True):
    """Answer to PrunePreviewRequest, which it ends."""

    report: PruningReport


class BaselineMeasured(Event, frozen=True, kw_only=True):
    """Eager has been measured (again)."""

    fingerprint: str
    baseline: Baseline


class TargetFinished(Event, frozen=True, kw_only=True):
    """One candidate has been built, or measured, or evaluated; a later one for the same index replaces it."""

    fingerprint: str
    index: int
    run: TargetRun


class JobFinished(Event, frozen=True, kw_only=True):
    """The job is done. ``result`` is None for a trace."""

    result: Result | None = None
    output: str = ""


class JobFailed(Event, frozen=True, kw_only=True):
    """The job ended with a problem; the worker lives."""

    problems: tuple[Problem, ...]


class JobCancelled(Event, frozen=True, kw_only=True):
    """The job stopped because somebody asked."""


class WorkerLost(Event, frozen=True, kw_only=True):
    """The process died. Made by the client, never sent by a worker."""

    problem: Problem
    exit_code: int | None = None


AnyEvent = (
    WorkerReady | Progress | LogLine | FileInspected | EnvironmentFound | AttemptStarted | AttemptEnded | ModelCaptured
    | SensitivityFound | FixTried | InputsCaught | PruningPreviewed | BaselineMeasured | TargetFinished | JobFinished
    | JobFailed | JobCancelled | WorkerLost
)  # fmt: skip
