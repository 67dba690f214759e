"""Messages between the window (or the command line) and the engine process.

Length-prefixed msgpack over a private channel, tagged unions, one protocol version. No pickle: a pickled
``torch.__version__`` imports torch into the window. Tensors travel as files, graphs as columns.
"""

from functools import cache
from typing import Any

import msgspec

from ace_studio.records.messages.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    BaselineMeasured,
    EnvironmentFound,
    Event,
    FileInspected,
    FixTried,
    InputsCaught,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobWarned,
    LogLine,
    ModelCaptured,
    Phase,
    Progress,
    PruningPreviewed,
    SensitivityFound,
    SizesWanted,
    TargetAtWork,
    TargetFinished,
    ValuesFound,
    WarningFound,
    WorkerLost,
    WorkerReady,
    WorkerSpoiled,
)
from ace_studio.records.messages.reports import (
    WEIGHTS_ALONE,
    DeviceReport,
    EntryPoint,
    EntryRole,
    EnvironmentReport,
    FileFacts,
    FileReport,
    FileToTrust,
    ModuleCalls,
    StoredTensor,
    TargetRefusals,
    TargetReport,
)
from ace_studio.records.messages.requests import (
    AnyRequest,
    CancelRequest,
    CatchRequest,
    DoctorRequest,
    FixRequest,
    InspectRequest,
    PrunePreviewRequest,
    Request,
    RunRequest,
    SensitivityRequest,
    ShutdownRequest,
    TraceRequest,
    ValuesRequest,
    code_of,
    engine_of,
    writable_folders,
)

PROTOCOL_VERSION = 1
JOB_ENDS = (
    FileInspected, EnvironmentFound, InputsCaught, PruningPreviewed, ValuesFound, JobFinished, JobFailed, JobCancelled
)  # fmt: skip
"""Every job of a running worker ends with exactly one of these; WorkerLost ends all jobs of a dead worker."""

_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Made when it is first needed: that takes a tenth of the start of the window, and neither process needs both."""
    return msgspec.msgpack.Decoder(kind)


def encode_message(message: AnyRequest | AnyEvent) -> bytes:
    """One message as msgpack, without its length. What is no character (a lone surrogate) is written as an escape."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:  # names and outputs of the user's code may hold anything
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(message, builtin_types=(bytes,))))


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
        case list() | tuple():
            return [_without_surrogates(one) for one in value]
        case _:
            return value


def decode_request(payload: bytes) -> AnyRequest:
    """Read a request. Raises: msgspec.ValidationError if it is not one."""
    request: AnyRequest = _decoder(AnyRequest).decode(payload)
    return request


def decode_event(payload: bytes) -> AnyEvent:
    """Read an event. Raises: msgspec.ValidationError if it is not one."""
    event: AnyEvent = _decoder(AnyEvent).decode(payload)
    return event
