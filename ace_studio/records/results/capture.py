"""The report of a capture: the attempts, the graph breaks, and which ops the targets support."""

from enum import StrEnum

import msgspec

from ace_studio.records.errors import Problem
from ace_studio.records.results.findings import Warning
from ace_studio.records.tensors import InputFinding


class AttemptStatus(StrEnum):
    """How one capture attempt ended."""

    OK = "ok"
    """Captured, and equal to eager on every example and on unseen sizes."""
    FAILED = "failed"
    """The tracer gave up."""
    WRONG = "wrong"
    """Captured, but not equal to eager, or static in a dimension that should be dynamic."""
    TIMEOUT = "timeout"
    """Took longer than its limit."""
    CRASHED = "crashed"
    """Ended the engine process; the next attempts ran in a new one."""
    SKIPPED = "skipped"
    """Not tried: an earlier attempt was accepted, or the method does not apply."""


class CaptureAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one capture method."""

    name: str
    status: AttemptStatus
    seconds: float = 0.0
    ops: int = 0
    error: Problem | None = None
    reason: str = ""
    """Why it was not tried."""
    is_explained: bool = True
    """Whether the cause of the error is known; False if the error only says where the method failed."""
    refused_example: int = 0
    """Number of the example that the graph does not reproduce, from 1; 0 if the error is about none."""


class GraphBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break: capture stopped at this line of the user's code and started again after it."""

    file: str
    line: int
    reason: str
    code: str = ""
    count: int = 1
    ops_left_eager: int = 0
    hint: str = ""
    id: str = ""
    """``op_id`` of the row of kind ``break`` that stands for it in the graph; empty if no row does."""
    module: str = ""
    """Dotted path of the module whose forward holds the line; empty at the root."""
    details: str = ""
    """The whole message of torch."""


class SubgraphKind(StrEnum):
    """The origin of one subgraph of a partial capture."""

    FRAME = "frame"
    """The ops between two graph breaks, found by Dynamo."""
    MODULE = "module"
    """One submodule, captured by itself because Dynamo cannot trace the code that calls it."""


class SubgraphReport(msgspec.Struct, frozen=True, kw_only=True):
    """One subgraph of a partial capture."""

    name: str
    """``p0``, ``p1``, ...: the prefix of the ids of its ops."""
    kind: SubgraphKind
    module: str = ""
    """Dotted path of the module that it is or that contains its code; empty at the root."""
    ops: int = 0
    calls: int = 1
    """How often the first example calls it."""
    weight_bytes: int = 0
    inputs: tuple[InputFinding, ...] = ()
    error: Problem | None = None
    """Why it stays eager; None if it was captured and verified."""


class SupportStatus(StrEnum):
    """How a target supports one op."""

    NATIVE = "native"
    """Directly, perhaps under another name."""
    DECOMPOSED = "decomposed"
    """As several other ops that the target has."""
    FALLBACK = "fallback"
    """The target calls PyTorch's own kernel for it."""
    UNSUPPORTED = "unsupported"
    """Not at all: the target cannot build a graph with this op."""


class OpSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How a target supports one op of the captured graph; known before anything is built."""

    id: str
    op: str
    status: SupportStatus
    instead: str = ""
    """What happens instead, in one sentence; empty if the op is native."""


class TargetSupport(msgspec.Struct, frozen=True, kw_only=True):
    """How a target supports the captured graph."""

    target: str
    counts: dict[str, int]
    """`SupportStatus` -> number of ops."""
    ops: tuple[OpSupport, ...] = ()
    """The ops that are not native."""


class CaptureReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the model was captured."""

    rung: str
    ops: int
    seconds: float
    fingerprint: str = ""
    """Hash over what the graph depends on: model, inputs, capture options, torch, device. Empty in older results."""
    graph_breaks: tuple[GraphBreak, ...] = ()
    rungs: tuple[CaptureAttempt, ...] = ()
    warnings: tuple[Warning, ...] = ()
    inputs: tuple[InputFinding, ...] = ()
    cached: bool = False
    pieces: tuple[SubgraphReport, ...] = ()
    """Empty if the graph was captured whole."""
    ops_left_eager: int = 0
    """Ops that run between the subgraphs."""
    support: tuple[TargetSupport, ...] = ()
    """One per target that is available and that the recipe names."""
