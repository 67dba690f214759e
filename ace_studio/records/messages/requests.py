"""Requests: messages from the window to the engine process."""

from pathlib import Path

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import EngineChoice, Recipe
from ace_studio.records.results import CaptureAttempt
from ace_studio.records.sending import Word


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all requests; ``job`` names the job in every event that answers it."""

    job: str


class InspectRequest(Request, frozen=True, kw_only=True):
    """Report what a file is without running any code in it."""

    path: str


class TraceRequest(Request, frozen=True, kw_only=True):
    """Load the model and capture its graph."""

    recipe: Recipe
    folder: str
    """Folder that the recipe's paths are relative to."""
    trusted_sha256: tuple[str, ...] = ()
    """Hashes of files that the user said may run."""
    trust_all: bool = False
    """The command line's ``--trust``."""
    word: Word = Word()
    """What the user said may be sent to the engine, if that is on another machine."""
    rungs_done: tuple[CaptureAttempt, ...] = ()
    """Capture attempts in an engine process that died during one of them. Methods that failed are not tried again."""


class RunRequest(TraceRequest, frozen=True, kw_only=True):
    """Everything: capture, compress, lower, measure, evaluate, export."""

    output: str
    """Folder for ``result.json`` and the artifacts; made if missing."""
    targets_lost: dict[str, Problem] = {}
    """Targets that crashed an engine process of this job, and how. They are not tried again."""
    timing_lock: str = ""
    """File that is locked while something is measured, so that jobs on one machine take turns; empty: none."""


class FixRequest(TraceRequest, frozen=True, kw_only=True):
    """Try the fixes for a place where capture stops, each in a copy; the user's files stay as they are."""

    file: str = ""
    line: int = 0
    """The place, as a graph break or a problem names it; an empty file means every place that is found."""


class PrunePreviewRequest(TraceRequest, frozen=True, kw_only=True):
    """Prune a copy as the recipe says; report what is removed and how the outputs change. Nothing is built."""


class SensitivityRequest(TraceRequest, frozen=True, kw_only=True):
    """Load, capture, and measure how much each op, computed at a low precision, disturbs the outputs."""

    precisions: tuple[str, ...] = ()
    """Values of `Precision`; empty: those of the recipe's plan, or those that a search for its goal begins with."""


class ValuesRequest(TraceRequest, frozen=True, kw_only=True):
    """Compute what one op gives for one example, in float and under the plan, and what its weights hold."""

    op_id: str
    example: int = 0
    """Index among the examples that the model was traced with."""
    target: str = ""
    """Target whose rounding is simulated; empty: the strictest of the recipe's."""
    assigned: dict[str, str] = {}
    """Op id -> `Precision` word, where a run decided otherwise than the recipe's plan."""
    save: str = ""
    """Path of an ``.npz`` file for the whole tensors; empty: none is written."""


class CatchRequest(Request, frozen=True, kw_only=True):
    """Run the user's script and keep the inputs that a module in it is called with."""

    script: str
    output: str
    """Folder for ``inputs.json`` and ``inputs.safetensors``; made if missing."""
    module: str = ""
    """A class, or a dotted path inside the outermost module that is called; empty for the outermost ones."""
    calls: int = 8
    """How many calls to keep at most."""
    arguments: tuple[str, ...] = ()
    """Command line arguments of the script (``sys.argv[1:]``)."""
    folder: str = ""
    """Working directory of the script; its own folder if empty."""
    trusted_sha256: tuple[str, ...] = ()
    trust_all: bool = False


class DoctorRequest(Request, frozen=True, kw_only=True):
    """Report what this interpreter has: versions, devices, targets and why some are missing."""

    engine: EngineChoice = EngineChoice()
    """Which engine is asked."""


class CancelRequest(Request, frozen=True, kw_only=True):
    """Stop the named job at the next safe point."""


class ShutdownRequest(Request, frozen=True, kw_only=True):
    """End the process."""


AnyRequest = (
    InspectRequest | TraceRequest | RunRequest | SensitivityRequest | FixRequest | PrunePreviewRequest | ValuesRequest
    | CatchRequest | DoctorRequest | CancelRequest | ShutdownRequest
)  # fmt: skip


def code_of(request: AnyRequest) -> Path | None:
    """The model or script whose code may run for the request; None if none does."""
    match request:
        case TraceRequest(recipe=recipe, folder=folder):
            return Path(folder, recipe.model.source)
        case CatchRequest(script=script, folder=folder):
            return Path(folder, script)
        case _:
            return None


def engine_of(request: AnyRequest) -> EngineChoice:
    """Where the request is to run. Files are inspected, and scripts are run, on this machine."""
    match request:
        case TraceRequest(recipe=recipe):
            return recipe.engine
        case DoctorRequest(engine=engine):
            return engine
        case _:
            return EngineChoice()


def writable_folders(request: AnyRequest) -> tuple[str, ...]:
    """The folders that the user named for what the job writes."""
    match request:
        case RunRequest(output=output) if output:
            return (output,)
        case CatchRequest(output=output):
            return (str(Path(output).parent) if Path(output).suffix else output,)
        case ValuesRequest(save=path) if path:
            return (str(Path(path).parent),)
        case _:
            return ()
