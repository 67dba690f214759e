"""What is sent to a device to be measured: artifacts, what their inputs are, and nothing of the model's code."""

import hashlib
import json
import math
import random
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.recipes.file import parse_recipe
from ace_studio.records.results import INPUTS_NAME, Result, RunStatus, TargetRun
from ace_studio.records.run_artifact import artifact_files, run_artifact
from ace_studio.records.safe_file import read_plain
from ace_studio.records.sending import Departure, LeavingFile, SendVerdict, Word, leaving
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import InputFinding, TensorSpec, Values, ValueSource, is_file_value, read_values
from ace_studio.records.untrusted import untrusted_problem

RUNTIMES = ("eager", "inductor", "aoti", "onnxruntime", "openvino", "executorch", "litert")
"""What ``measure_there.py`` can open."""
HOLDS_CODE = frozenset({"eager", "inductor", "aoti"})
"""Their artifacts are programs of torch: opening one may run code that it brings."""
_CODES = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "bool": "?", "uint16": "H", "uint32": "I",
}  # fmt: skip
"""Type -> letter of `struct`. ``bfloat16`` is written as the upper half of ``float32``."""
_STORED_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "BOOL": "bool",
}  # fmt: skip
"""Types of safetensors as torch calls them."""
_LARGEST_INPUTS = 2_000_000_000
_MOST_NUMBERS = _LARGEST_INPUTS // 8
_MOST_THREADS = 1024
_BLOCK = 4096
"""So many numbers are drawn, and repeated: for how long a runtime computes, that is random enough."""
BUDGET_S = 20.0
"""Seconds of rounds for each artifact; at least five rounds are made."""


class SentFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an artifact."""

    name: str
    """Relative to the artifact's folder."""
    sha256: str
    source: LeavingFile
    """Which file that is here."""


class SentArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """One artifact to measure."""

    index: int
    """Of its run in the result."""
    label: str
    runtime: str
    files: tuple[SentFile, ...]
    wanted: dict[str, str] = {}
    """Package -> ``package==version`` that the run had."""


class SentInput(msgspec.Struct, frozen=True, kw_only=True):
    """One input: its numbers row by row, little-endian."""

    dtype: str
    shape: tuple[int, ...]
    order: tuple[int, ...]
    """Dimensions from the slowest to the fastest in the memory that it needs; empty: any layout does."""
    content: bytes

    @property
    def sha256(self) -> str:
        """Of the content."""
        return hashlib.sha256(self.content).hexdigest()


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    artifacts: tuple[SentArtifact, ...]
    inputs: tuple[SentInput, ...]
    threads: int
    rounds: int
    problems: dict[int, Problem] = {}
    """Index of a run -> why it cannot be measured elsewhere."""


def make_order(
    result: Result,
    folder: Path,
    indices: Sequence[int] = (),
    *,
    is_trusted: Callable[[str], bool] = lambda _sha256: False,
    device: str = "",
    word: Word | None = None,
) -> Order:
    """What to send for some runs of a result, or for all that have an artifact.

    Args:
        result: Of the run.
        folder: The run's own; what links of it lead to elsewhere is not sent.
        indices: Of the runs.
        is_trusted: Whether an artifact that holds code may be opened, by its SHA-256; others are not asked about.
        device: What is sent to; empty if nothing leaves this machine.
        word: What the user named by hand.

    Raises: AceError(NOT_FOUND) if no run has one; UNSUPPORTED for an input of a type that cannot be made up.
    """
    chosen = indices or [at for at, run in enumerate(result.runs) if run.artifact and run.status is RunStatus.OK]
    if not chosen:
        why, remedy = "no run of this result has an artifact", "Run the recipe again, and name a target that saves one"
        raise AceError.of(ErrorCode.NOT_FOUND, "There is nothing to measure", why=why, remedy=remedy, where=str(folder))
    artifacts, problems = [], {}
    for index in chosen:
        try:
            artifact = _artifact(result, index, folder, device, word)
            first = artifact.files[0]
            if artifact.runtime in HOLDS_CODE and not is_trusted(first.sha256):
                raise AceError(_untrusted(first))
            artifacts.append(artifact)
        except AceError as error:
            problems[index] = error.problem
    threads = result.environment.get("threads")
    return Order(
        artifacts=tuple(artifacts),
        inputs=_inputs(result, folder) if artifacts else (),
        threads=min(threads, _MOST_THREADS) if isinstance(threads, int) and threads > 0 else 1,
        rounds=_recipe_rounds(result),
        problems=problems,
    )


def _artifact(result: Result, index: int, folder: Path, device: str, word: Word | None) -> SentArtifact:
    artifact = run_artifact(result.runs, index, folder.absolute())
    run = result.runs[index]
    _check_movable(result, run, artifact)
    files = leaving(artifact_files(artifact), folder, word)
    if device and (refused := Departure(folder=folder, files=files).refusals(device, is_named=True)):
        raise AceError(*refused)
    row = TARGET_ROWS[run.target]
    versions = {name: str(result.environment[name]) for name in ("torch", *row.packages) if name in result.environment}
    return SentArtifact(
        index=index,
        label=f"{run.target} {run.built_precision}".strip(),
        runtime=row.opener or run.target,
        files=tuple(
            SentFile(name=one.name.relative_to(artifact.parent).as_posix(), sha256=one.sha256(), source=one)
            for one in files
        ),
        wanted={name: f"{name}=={version.partition('+')[0]}" for name, version in versions.items()},
    )


def _untrusted(file: SentFile) -> Problem:
    remedy = "Measure the folder of a run in your history; if you trust who made this one: ace-studio measure … --trust"
    return replace(untrusted_problem(file.source.path, file.sha256, "what it brings, on the device"), remedy=remedy)


def _check_movable(result: Result, run: TargetRun, artifact: Path) -> None:
    row = TARGET_ROWS.get(run.target)
    why = ""
    if (artifact / "pieces.json").exists():
        why = "the model's own Python runs between its subgraphs, and that is never sent"
    elif run.target == "coreml":
        why = "Core ML packages are timed by a run on the Mac itself"
    elif row is None or (row.opener or run.target) not in RUNTIMES:
        why = f"an artifact of {run.target} opens only on the machine that it was built on, or one just like it"
    elif str(result.environment.get("device", "cpu")) != "cpu":
        why = f"it was built for {result.environment['device']}, and devices measure on their processor"
    if why:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{run.target} {run.precision} cannot be measured on another device",
            why=why,
            remedy="Build it for onnxruntime, openvino, executorch or litert, with the whole graph captured",
        )


def _recipe_rounds(result: Result) -> int:
    try:
        return parse_recipe(result.recipe, name="the recipe of the run").measure.rounds
    except AceError:
        return 30  # an older result, without its recipe


def _inputs(result: Result, folder: Path) -> tuple[SentInput, ...]:
    """The call that was measured; where an older run did not keep it, made up in its sizes."""
    findings = result.capture.inputs if result.capture else ()
    orders = {at: finding.memory_order for at, finding in enumerate(findings)}
    try:
        (kept,) = leaving([folder.absolute() / INPUTS_NAME], folder)
        if kept.verdict is not SendVerdict.GOES:
            return _made_up(result, findings)
        stored = read_stored(read_plain(kept.path, most=_LARGEST_INPUTS))
    except (OSError, ValueError, KeyError):
        return _made_up(result, findings)
    return tuple(
        SentInput(dtype=dtype, shape=shape, order=orders.get(at, ()), content=content)
        for at, (dtype, shape, content) in enumerate(stored)
    )


def read_stored(content: bytes) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of the tensors ``0.0``, ``0.1``, ... of safetensors. Raises: ValueError, KeyError."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    found = []
    for at in range(sum(name != "__metadata__" for name in header)):
        one = header[f"0.{at}"]
        low, high = one["data_offsets"]
        found.append((_STORED_TYPES[one["dtype"]], tuple(one["shape"]), content[start + low : start + high]))
    return found


def _made_up(result: Result, findings: Sequence[InputFinding]) -> tuple[SentInput, ...]:
    row: dict[str, TensorSpec] = {}
    with suppress(AceError):  # an older result, without its recipe
        rows = parse_recipe(result.recipe, name="the recipe of the run").inputs.rows
        row = rows[0] if rows else {}
    words = str(result.environment.get("measured_input", "")).split(", ")
    measured = [tuple(map(int, re.findall(r"\d+", one))) for one in words]
    traced = [tuple(dim.size for dim in finding.dims) for finding in findings]
    shapes = measured if list(map(len, measured)) == list(map(len, traced)) else traced
    return tuple(_input(one, shape, row.get(one.name)) for one, shape in zip(findings, shapes, strict=True))


def _input(finding: InputFinding, shape: tuple[int, ...], spec: TensorSpec | None) -> SentInput:
    values = Values(ValueSource.RANDOM, (0.0, 1.0))
    if finding.dtype.startswith(("float", "bfloat")):
        values = Values(ValueSource.NORMAL, (0.0, 1.0))
    if spec is not None and not is_file_value(spec.values):
        told = read_values(spec.values)
        values = values if told.source in (ValueSource.CALIBRATION, ValueSource.VALUE, ValueSource.NONE) else told
    count = math.prod(shape)
    if min(shape, default=1) < 0 or count > _MOST_NUMBERS:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"An input of the size {'x'.join(map(str, shape))} cannot be made up",
            why="result.json names it as the measured one",
            remedy="Run the recipe again: newer runs keep the call that they measured",
        )
    content = numbers_as_bytes(_numbers(values, finding.dtype, count), finding.dtype, count)
    return SentInput(dtype=finding.dtype, shape=shape, order=finding.memory_order, content=content)


def _numbers(values: Values, dtype: str, count: int) -> list[float]:
    """Numbers to repeat until there are enough."""
    drawn, some = random.Random(0), range(min(count, _BLOCK))
    is_float = "float" in dtype
    if values.source is ValueSource.ZEROS:
        return [0.0]
    if values.source is ValueSource.ONES:
        return [1.0]
    if values.source is ValueSource.CONSTANT:
        return [values.numbers[0]]
    if values.source is ValueSource.RANGE:
        return [float(one) for one in range(count)]
    if values.source is ValueSource.RANDOM and values.numbers:
        low, high = values.numbers
        return [drawn.uniform(low, high) if is_float else drawn.randint(int(low), int(high)) for _ in some]
    if values.source is ValueSource.RANDOM and not is_float:
        return [drawn.randrange(2 if dtype == "bool" else 100) for _ in some]
    mean, deviation = values.numbers if values.source is ValueSource.NORMAL else (0.0, 1.0)
    return [drawn.gauss(mean, deviation) for _ in some]


def numbers_as_bytes(numbers: Iterable[float], dtype: str, count: int) -> bytes:
    """``count`` numbers of a type, the given ones again and again. Raises: AceError(UNSUPPORTED) for another type."""
    given = list(numbers) or [0.0]
    if dtype == "bfloat16":
        block = b"".join(struct.pack("<f", one)[2:] for one in given)
    elif (code := _CODES.get(dtype)) is not None:
        made = given if code in "defs" else [bool(one) if code == "?" else int(one) for one in given]
        block = struct.pack(f"<{len(made)}{code}", *made)
    else:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"Inputs of type {dtype} cannot be made up for a device",
            remedy="Give the model another input type, or measure on this machine by a run",
        )
    size = count * len(block) // len(given)
    return (block * (size // len(block) + 1))[:size]
