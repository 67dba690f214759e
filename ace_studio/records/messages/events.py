"""Events: messages from the engine process to the window."""

from enum import StrEnum

import msgspec

from ace_studio.records import results
from ace_studio.records.errors import Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages.reports import EnvironmentReport, FileReport, ModuleCalls, TargetRefusals
from ace_studio.records.results.pruning import PruningReport
from ace_studio.records.tensors import TensorSpec
from ace_studio.records.values import OpValues


class Phase(StrEnum):
    """What the engine is doing; the text of the progress bar."""

    START = "Starting the engine"
    LOAD = "Loading the model"
    EAGER = "Running the model once"
    CAPTURE = "Capturing the graph"
    VERIFY = "Comparing with eager"
    CALIBRATE = "Calibrating"
    COMPRESS = "Compressing"
    LOWER = "Building"
    SENSITIVITY = "Finding sensitive ops"
    MEASURE = "Measuring latency"
    EVALUATE = "Measuring accuracy"
    EXPORT = "Saving and verifying"
    REPORT = "Writing the report"
    FIX = "Trying a fix"
    CATCH = "Running the script"
    PRUNE = "Pruning"
    FINETUNE = "Fine-tuning"
    VALUES = "Computing values"
    ADVISE = "Looking for advice"
    INSTALL = "Installing the engine"
    CONNECT = "Connecting"
    SEND = "Sending files"
    FETCH = "Fetching results"


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all events; ``job`` is empty for those that answer no request."""

    job: str = ""


class WorkerReady(Event, frozen=True, kw_only=True):
    """The engine process is up and has imported what it needs."""

    protocol: int
    pid: int
    python: str
    torch: str


class Progress(Event, frozen=True, kw_only=True):
    """What the job is doing. ``fraction`` of this phase in 0..1, or None if it is not known."""

    phase: Phase
    detail: str = ""
    fraction: float | None = None
    is_pulse: bool = False
    """Sent once a second while an operation runs: a log may leave most of them out."""


class LogLine(Event, frozen=True, kw_only=True):
    """A line that the user's code, torch or ACE Studio printed."""

    text: str


class JobWarned(Event, frozen=True, kw_only=True):
    """Something that a person should act on while the job goes on. Made by the client."""

    problem: Problem


class WarningFound(Event, frozen=True, kw_only=True):
    """A warning as soon as it is known; the result holds it too."""

    warning: results.Warning


class FileInspected(Event, frozen=True, kw_only=True):
    """Answer to InspectRequest."""

    report: FileReport


class EnvironmentFound(Event, frozen=True, kw_only=True):
    """Answer to DoctorRequest."""

    report: EnvironmentReport


class AttemptStarted(Event, frozen=True, kw_only=True):
    """A capture method starts. If the process dies or hangs before its `AttemptEnded`, this method is the cause."""

    name: str
    limit_s: float | None = None
    """Seconds from now after which it counts as hung; None while its graph is compared with eager, without a limit."""


class AttemptEnded(Event, frozen=True, kw_only=True):
    """A capture attempt ended."""

    outcome: results.CaptureAttempt


class TargetAtWork(Event, frozen=True, kw_only=True):
    """Code of a target begins; it has ended if the name is empty. If the process crashes meanwhile, it is the cause."""

    target: str = ""
    index: int | None = None
    """Which run it works for, as in `TargetFinished`."""


class ModelCaptured(Event, frozen=True, kw_only=True):
    """The graph was captured."""

    fingerprint: str
    capture: results.CaptureReport
    graph: GraphTable
    sources: dict[str, str] = {}
    """Path -> text of the user's files that ops point to, so that the window need not read them."""
    refusals: tuple[TargetRefusals, ...] = ()
    """Of every target that is available, in the order of the registry."""


class SensitivityFound(Event, frozen=True, kw_only=True):
    """The sensitivity of ops as far as it is known; a later event replaces it."""

    fingerprint: str
    ops: tuple[results.OpSensitivity, ...]
    samples_done: int
    samples: int
    forwards: float
    """Cost until now, in forward passes over the samples."""
    is_complete: bool = False
    notes: tuple[str, ...] = ()
    """Ops that the fast method could not measure, and what measuring them cost."""


class FixTried(Event, frozen=True, kw_only=True):
    """One fix was tried."""

    fix: FixReport


class InputsCaught(Event, frozen=True, kw_only=True):
    """Answer to CatchRequest."""

    path: str
    """Path of the ``inputs.json``, which a recipe can name; empty if no call was kept."""
    module: str = ""
    """Class of the module that was chosen."""
    seen: int = 0
    """Calls of it."""
    kept: int = 0
    bytes: int = 0
    """Of the tensors that were kept."""
    modules: tuple[ModuleCalls, ...] = ()
    """All modules that were called, the outermost first, to choose from."""
    rows: tuple[dict[str, TensorSpec], ...] = ()
    """The kept calls as rows of the shape table that name the file's tensors; paths are absolute."""
    problem: Problem | None = None
    """Why the script stopped early; the calls until then are kept."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""


class SizesWanted(Event, frozen=True, kw_only=True):
    """A run stops because its data have sizes that the examples do not cover: the rows that would."""

    rows: tuple[dict[str, TensorSpec], ...]


class PruningPreviewed(Event, frozen=True, kw_only=True):
    """Answer to PrunePreviewRequest."""

    report: PruningReport


class ValuesFound(Event, frozen=True, kw_only=True):
    """Answer to ValuesRequest."""

    fingerprint: str
    values: OpValues


class BaselineMeasured(Event, frozen=True, kw_only=True):
    """Eager has been measured (again)."""

    fingerprint: str
    baseline: results.Baseline


class TargetFinished(Event, frozen=True, kw_only=True):
    """A candidate was built, measured or evaluated; a later event for the same index replaces it."""

    fingerprint: str
    index: int
    run: results.TargetRun


class JobFinished(Event, frozen=True, kw_only=True):
    """The job is done. ``result`` is None for a trace."""

    result: results.Result | None = None
    output: str = ""


class JobFailed(Event, frozen=True, kw_only=True):
    """The job ended with a problem; the worker lives."""

    problems: tuple[Problem, ...]


class JobCancelled(Event, frozen=True, kw_only=True):
    """The job stopped because it was cancelled."""


class WorkerSpoiled(Event, frozen=True, kw_only=True):
    """The running job, which ends next, did to the process what cannot be put back. The client starts another one."""

    left: tuple[str, ...]


class WorkerLost(Event, frozen=True, kw_only=True):
    """The process died. Made by the client, never sent by a worker."""

    problem: Problem


AnyEvent = (
    WorkerReady | Progress | LogLine | JobWarned | WarningFound | FileInspected | EnvironmentFound | AttemptStarted
    | AttemptEnded | ModelCaptured | SensitivityFound | FixTried | InputsCaught | SizesWanted | PruningPreviewed
    | ValuesFound | TargetAtWork | BaselineMeasured | TargetFinished | JobFinished | JobFailed | JobCancelled
    | WorkerLost | WorkerSpoiled
)  # fmt: skip
