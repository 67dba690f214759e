"""Records that only messages carry: about files, this machine and its targets, and a script's calls."""

from enum import StrEnum

import msgspec

from ace_studio.records.tensors import TensorSpec


class EntryRole(StrEnum):
    """What a callable seems to be for, by its name, signature and value; a proposal, never run before it is trusted."""

    NONE = ""
    MODEL = "model"
    """Makes the whole model."""
    PART = "part"
    """A module class that another class of the file is made of."""
    TRACING = "tracing"
    """Gives examples to trace with."""
    CALIBRATION = "calibration"
    """Gives calibration inputs."""
    DATA = "data"
    """Gives data that may serve for calibration, such as a loader."""
    EVALUATE = "evaluate"
    """Measures the model that it is given."""


class EntryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A callable of a ``.py`` file, or a model that it holds, read from its syntax tree."""

    name: str
    line: int
    kind: str
    """``function``, ``class`` (a factory of itself), or ``variable`` (the module itself)."""
    signature: str
    summary: str = ""
    """First line of its docstring."""
    required_arguments: int = 0
    is_module: bool = False
    """A class whose bases look like ``nn.Module``."""
    role: EntryRole = EntryRole.NONE


class StoredTensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a weights file, read from its header."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class FileToTrust(msgspec.Struct, frozen=True, kw_only=True):
    """A file of code that opening a model runs."""

    path: str
    sha256: str
    would_run: tuple[str, ...] = ()
    """What of it runs, as texts for people."""


WEIGHTS_ALONE = frozenset({"safetensors", "state-dict", "weights-index"})
"""Kinds of files that need code from elsewhere."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a loader finds in a file without running any code in it."""

    would_run: tuple[str, ...] = ()
    """What opening it would run, as texts for people."""
    entries: tuple[EntryPoint, ...] = ()
    tensors: tuple[StoredTensor, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, TensorSpec], ...] = ()
    """Rows of example inputs to begin with, if the file describes the sizes of its inputs."""
    loads_weights: bool = False
    """Whether the code itself reads weights from somewhere."""
    weights: tuple[str, ...] = ()
    """Files of weights beside the code whose tensors a class of it seems to have, the likeliest first."""
    code: tuple[str, ...] = ()
    """For weights: Python files beside them with a class that seems to have these tensors, the likeliest first."""
    fits: tuple[str, ...] = ()
    """For weights: models of installed packages that have these tensors, such as ``timm:resnet18``."""


class FileReport(FileFacts, frozen=True, kw_only=True):
    """What a file is, found without running any code in it."""

    path: str
    kind: str
    """Row name of the loader registry: python, safetensors, state-dict, pickle-module, torchscript, pt2, onnx, ..."""
    label: str
    """The kind as a text for people."""
    sha256: str
    size_bytes: int
    trust: str
    """``inspect``, ``data`` or ``code``: the level of trust that opening it needs."""
    files: tuple[FileToTrust, ...] = ()
    """The code that has to be trusted: the file itself, and what it imports from its folders."""


class TargetReport(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the target registry on this machine."""

    name: str
    label: str
    available: bool
    reason: str = ""
    """Why it is not available."""
    install: str = ""
    """The command that installs what it, or some of its precisions, lack."""
    version: str = ""
    precisions: dict[str, str] = {}
    """Precision -> empty if it is supported, else why not."""
    is_in_auto: bool = True
    """Whether ``auto`` includes it if it is available; otherwise it has to be chosen by name."""
    not_run: str = ""
    """Why what it builds cannot be run on this machine; empty if it can."""


class TargetRefusals(msgspec.Struct, frozen=True, kw_only=True):
    """Operators that a target leaves at a float precision in a captured graph, although it supports the precision."""

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
    """Known problems of this environment, each with its remedy."""
    containment: str = ""
    """Whether jobs can be contained here, and how far, or why not."""
    engine_packs: tuple[str, ...] = ()
    """Installed engine packs, as the command line finds them."""


class ModuleCalls(msgspec.Struct, frozen=True, kw_only=True):
    """A module that a script called."""

    path: str
    """Dotted path inside of the outermost module; empty for that itself."""
    kind: str
    """Its class."""
    calls: int
    inputs: tuple[str, ...] = ()
    """The first few different kinds of calls, such as ``x float32 1x3x32x32``."""
