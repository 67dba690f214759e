"""What the window asks the engine process for."""

from __future__ import annotations

import msgspec

from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.results import CaptureAttempt


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
    rungs_done: tuple[CaptureAttempt, ...] = ()
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
