"""What the window (or the command line) and the engine process say to each other.

Length-prefixed msgpack over a private channel, tagged unions, one protocol version. No pickle: a pickled
``torch.__version__`` imports torch into the window. Tensors travel as files, graphs as columns.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.fixes import FixReport
from ace_studio.records.graph import GraphTable
from ace_studio.records.pruning import PruningReport
from ace_studio.records.recipe import Recipe
from ace_studio.records.results import Baseline, CaptureReport, OpSensitivity, Result, RungOutcome, TargetRun
from ace_studio.records.tensors import TensorSpec

PROTOCOL_VERSION = 1


class Phase(StrEnum):
    """What the engine is busy with; the word a progress bar shows."""

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
    ADVISE = "Looking for advice"


# --- requests: parent -> worker ---


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all requests; ``job`` names the job in every event that answers it."""

    job: str


class InspectRequest(Request, frozen=True, kw_only=True):
    """Say what a file is without running any code in it."""

    path: str


class TraceRequest(Request, frozen=True, kw_only=True):
    """Load and capture."""

    recipe: Recipe
    folder: str
    """Folder that the recipe's paths are relative to."""
    trusted_sha256: tuple[str, ...] = ()
    """Hashes of files that the user said may run."""
    trust_all: bool = False
    """The command line's ``--trust``."""
    rungs_done: tuple[RungOutcome, ...] = ()
    """How rungs ended in an engine process that died under one of them. Those that failed are not tried again."""


class RunRequest(TraceRequest, frozen=True, kw_only=True):
    """Everything: capture, compress, lower, measure, evaluate, export."""

    output: str
    """Folder for ``result.json`` and the artifacts; made if missing."""


class FixRequest(TraceRequest, frozen=True, kw_only=True):
    """Try the fixes that fit one place where capture stops, each in a copy; nothing of the user's is changed."""

    file: str = ""
    line: int = 0
    """The place, as a graph break or a problem names it; an empty file means every place that is found."""


class PrunePreviewRequest(TraceRequest, frozen=True, kw_only=True):
    """Prune a copy as the recipe says and tell what goes and what it does to the outputs; nothing is built."""


class SensitivityRequest(TraceRequest, frozen=True, kw_only=True):
    """Load, capture, and find how much each op, computed at a low precision, disturbs the outputs."""

    precisions: tuple[str, ...] = ()
    """Words of `Precision`; empty: those that the recipe plans, or that a search for its goal begins with."""


class CatchRequest(Request, frozen=True, kw_only=True):
    """Run a script of the user's and keep what a module in it is called with."""

    script: str
    output: str
    """Folder for ``inputs.json`` and ``inputs.safetensors``; made if missing."""
    module: str = ""
    """A class, or a dotted path inside the outermost module that is called; empty for the outermost ones."""
    calls: int = 8
    """How many calls to keep at most."""
    arguments: tuple[str, ...] = ()
    """What the script finds in ``sys.argv`` behind its own name."""
    folder: str = ""
    """Where the script runs, as the folder of a shell; the script's own if empty."""
    trusted_sha256: tuple[str, ...] = ()
    trust_all: bool = False


class DoctorRequest(Request, frozen=True, kw_only=True):
    """Say what this interpreter has: versions, devices, targets and why some are missing."""


class CancelRequest(Request, frozen=True, kw_only=True):
    """Stop the named job at the next safe point."""


class ShutdownRequest(Request, frozen=True, kw_only=True):
    """End the process."""


AnyRequest = (
    InspectRequest | TraceRequest | RunRequest | SensitivityRequest | FixRequest | PrunePreviewRequest | CatchRequest
    | DoctorRequest | CancelRequest | ShutdownRequest
)  # fmt: skip


# --- facts that only messages carry ---


class EntryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A callable of a ``.py`` file, read from its syntax tree."""

    name: str
    line: int
    kind: str
    """``function`` or ``class`` (a class is a factory of itself)."""
    signature: str
    summary: str = ""
    """First line of its docstring."""
    required_arguments: int = 0
    is_module: bool = False
    """A class whose bases look like ``nn.Module``."""


class StoredTensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a weights file, read from its header."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class FileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a file is, found without running any code in it."""

    path: str
    kind: str
    """Row name of the loader registry: python, safetensors, state-dict, pickle-module, torchscript, pt2, onnx, ..."""
    label: str
    """The kind in words."""
    sha256: str
    size_bytes: int
    trust: str
    """``inspect``, ``data`` or ``code``: the level of trust that opening it needs."""
    would_run: tuple[str, ...] = ()
    """What opening it would run, in words."""
    entries: tuple[EntryPoint, ...] = ()
    tensors: tuple[StoredTensor, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, TensorSpec], ...] = ()
    """Rows of example inputs to begin with, where the file's own words give their sizes."""


class TargetReport(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the target registry on this machine."""

    name: str
    label: str
    available: bool
    reason: str = ""
    """Why it is not available."""
    install: str = ""
    """The line that would install it."""
    version: str = ""
    precisions: dict[str, str] = {}
    """Precision -> empty if it can, else why it cannot."""
    is_in_auto: bool = True
    """Whether ``auto`` takes it where it is available; if not, it has to be chosen by name."""


class TargetRefusals(msgspec.Struct, frozen=True, kw_only=True):
    """What a target leaves at a float precision in a captured graph, although it can do the precision in general."""

    target: str
    operators: dict[str, dict[str, str]] = {}
    """Operator such as ``aten.relu.default`` -> `Precision` word -> why not, in a sentence."""


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A device that models can run on."""

    name: str
    """``cpu`` or ``cuda:0``."""
    label: str
    available: bool
    reason: str = ""
    memory_bytes: int = 0


class EnvironmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """The interpreter that the engine runs in."""

    python: str
    executable: str
    platform: str
    cpu: str
    cores: int
    memory_bytes: int
    versions: dict[str, str]
    """Package -> version, of those that matter and are installed."""
    devices: tuple[DeviceReport, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    notes: tuple[str, ...] = ()
    """Known traps of this environment, each with its remedy."""


class ModuleCalls(msgspec.Struct, frozen=True, kw_only=True):
    """A module that a script called."""

    path: str
    """Dotted path inside of the outermost module; empty for that itself."""
    kind: str
    """Its class."""
    calls: int
    inputs: tuple[str, ...] = ()
    """The first few different forms of its calls, in words: ``x float32 1x3x32x32``."""


# --- events: worker -> parent ---


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


class RungStarted(Event, frozen=True, kw_only=True):
    """A rung of the ladder is at work; if the process dies or hangs before its `RungTried`, the rung did it."""

    name: str
    limit_s: float | None = None
    """Seconds from now after which it has hung; None while its graph is compared with eager, which has no limit."""


class RungTried(Event, frozen=True, kw_only=True):
    """One rung of the ladder ended."""

    outcome: RungOutcome


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
    WorkerReady | Progress | LogLine | FileInspected | EnvironmentFound | RungStarted | RungTried | ModelCaptured
    | SensitivityFound | FixTried | InputsCaught | PruningPreviewed | BaselineMeasured | TargetFinished | JobFinished
    | JobFailed | JobCancelled | WorkerLost
)  # fmt: skip

JOB_ENDS = (FileInspected, EnvironmentFound, InputsCaught, PruningPreviewed, JobFinished, JobFailed, JobCancelled)
"""Exactly one of these ends every job of a living worker; WorkerLost ends all jobs of a dead one."""

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(AnyRequest)
_event_decoder: msgspec.msgpack.Decoder[AnyEvent] = msgspec.msgpack.Decoder(AnyEvent)


def encode_message(message: AnyRequest | AnyEvent) -> bytes:
    """One message as msgpack, without its length."""
    return _encoder.encode(message)


def decode_request(payload: bytes) -> AnyRequest:
    """Read a request. Raises msgspec.ValidationError if it is none."""
    request: AnyRequest = _request_decoder.decode(payload)
    return request


def decode_event(payload: bytes) -> AnyEvent:
    """Read an event. Raises msgspec.ValidationError if it is none."""
    return _event_decoder.decode(payload)
