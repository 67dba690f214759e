"""A Core ML package: its interface, the operations of its program, and a check of what was written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import LoweringJob
from ace_studio.engine.targets.shared.kernels import Kernel, heavy_ops
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision

_PORTS_KEY = "ace_studio.ports"
"""Entry of the model's metadata: what it takes and gives, with the types of the original model."""
PRODUCTS = frozenset({"conv", "conv_transpose", "linear", "matmul"})
_STORED = ("const", "constexpr")
_PAIRS = frozenset({"quantize", "dequantize"})
_FLOATS = {"FLOAT32": Precision.FP32, "FLOAT16": Precision.FP16}


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """An input or an output."""

    name: str
    """As the package calls it."""
    dtype: str
    """As torch calls it; Core ML has 32 bits for integers and truth values."""
    sizes: tuple[tuple[int, int] | None, ...]
    """Lowest and highest size of each dimension; None: not known."""

    def named(self, name: str) -> Port:
        """The same with the package's name."""
        return replace(self, name=name)

    @property
    def known_sizes(self) -> list[tuple[int, int]]:
        """The sizes of an input."""
        return [one for one in self.sizes if one is not None]


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """What a package takes and gives, in the order of the flat call."""

    takes: tuple[Port, ...]
    gives: tuple[Port, ...]


def set_ports(model: Any, takes: Sequence[Port], gives: Sequence[Port]) -> None:
    """Write into the model's metadata what it takes and gives."""
    ports = Ports(takes=tuple(takes), gives=tuple(gives))
    model.user_defined_metadata[_PORTS_KEY] = msgspec.json.encode(ports).decode()


def ports_of(spec: Any, *, name: str) -> Ports:
    """What a package of ours takes and gives. Raises: AceError(BAD_FILE) for a package of somebody else."""
    stored = spec.description.metadata.userDefined.get(_PORTS_KEY, "")
    try:
        return msgspec.json.decode(stored, type=Ports)
    except msgspec.DecodeError as error:
        why = "its metadata do not say what it takes and gives"
        raise AceError.of(ErrorCode.BAD_FILE, f"{name} is no Core ML package of a run", why=why, where=name) from error


@dataclass(frozen=True)
class Operation:
    """One operation of a program."""

    kind: str
    """``conv``, ``constexpr_affine_dequantize``, ... as Core ML names it."""
    inputs: tuple[str, ...]
    """Names of the values that it reads."""
    outputs: tuple[str, ...]
    dtype: str
    """Of its first result: ``FLOAT32``, ``INT8``, ... as the format names it."""


def operations_of(spec: Any) -> list[Operation]:
    """The operations of the program in a model's specification, in their order."""
    from coremltools.proto import MIL_pb2

    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    return [
        Operation(
            kind=one.type,
            inputs=tuple(
                bound.name for _, given in sorted(one.inputs.items()) for bound in given.arguments if bound.name
            ),
            outputs=tuple(value.name for value in one.outputs),
            dtype=MIL_pb2.DataType.Name(one.outputs[0].type.tensorType.dataType) if one.outputs else "",
        )
        for one in block.operations
    ]


def kernels_of_program(operations: Iterable[Operation], owners: Mapping[str, str], job: LoweringJob) -> list[Kernel]:
    """What the program has for each op, with the precision that the types of its values mean.

    Args:
        operations: Of the specification that is saved.
        owners: Name of a value -> op id.
        job: What it was built for.
    """
    listed = list(operations)
    heavy = heavy_ops(job.captured.table)
    makers = {value: one for one in listed for value in one.outputs}
    found = []
    for one in listed:
        op_id = next((owners[value] for value in one.outputs if value in owners), "")
        if not op_id or one.kind.startswith(_STORED) or one.kind in _PAIRS:
            continue
        # What only stands between two int8 ops reads the same pairs, but gives a float.
        is_int8 = job.plan.precision_of(op_id) is Precision.INT8_STATIC
        precision = computed_in(one, makers, takes_pairs=is_int8)
        found.append(
            Kernel(
                name=one.outputs[0],
                kind=one.kind,
                precision=str(precision or "unknown"),
                op_ids=(op_id,),
                device="unknown",
                is_arithmetic=one.kind in PRODUCTS and op_id in heavy,
                is_conversion=one.kind == "cast" or one.dtype not in _FLOATS,
            )
        )
    return found


def computed_in(operation: Operation, makers: Mapping[str, Operation], *, takes_pairs: bool) -> Precision | None:
    """The precision that an operation computes in; None for one without floats or 8-bit values.

    Args:
        operation: The operation.
        makers: Name of a value -> the operation that makes it.
        takes_pairs: Whether it belongs to an op that is planned at int8-static.
    """
    read = [makers.get(value) for value in operation.inputs]
    values = [one for one in read if one is None or not one.kind.startswith(_STORED)]
    if takes_pairs and values and all(one is not None and one.kind == "dequantize" for one in values):
        return Precision.INT8_STATIC
    if any(one is not None and one.kind.startswith("constexpr") for one in read):
        return Precision.INT8_WEIGHT
    return _FLOATS.get(operation.dtype)


def check_package(path: Path, written: Any, ports: Ports) -> None:
    """Read a package back, and compare it with the specification that was written and with what the graph demands.

    Raises: AceError(WRONG_CAPTURE) with the first difference.
    """
    spec = read_spec(path)
    problem = _interface_problem(spec, ports)
    if not problem and operations_of(spec) != operations_of(written):
        problem = "its program has other operations than the one that was converted"
    problem = problem or _weights_problem(path, spec)
    if problem:
        raise AceError.of(
            ErrorCode.WRONG_CAPTURE,
            f"The saved package {path.name} is not what was converted",
            why=problem,
            remedy="Do not ship it. Try another target.",
            where=str(path),
        )


def read_spec(path: Path) -> Any:
    """The specification in a package. Raises: AceError(BAD_FILE) if it is none."""
    import coremltools

    try:
        with hushed():
            return coremltools.models.MLModel(str(path), skip_model_load=True).get_spec()
    except Exception as error:  # border: coremltools raises plain Exception for a file that it cannot read
        raise library_error(
            ErrorCode.BAD_FILE, f"coremltools cannot read {path.name}", error, where=str(path)
        ) from error


def _interface_problem(spec: Any, ports: Ports) -> str:
    """How the declared inputs and the computed outputs differ from those of the graph; empty if they do not."""
    takes = [(one.name, _array_word(one), _declared_sizes(one)) for one in spec.description.input]
    wanted = [(one.name, _core_word(one.dtype), list(one.sizes)) for one in ports.takes]
    if takes != wanted:
        return f"it takes {takes}, the graph {wanted}"
    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    made = {value.name: value.type.tensorType for one in block.operations for value in one.outputs}
    for declared, port in zip(spec.description.output, ports.gives, strict=True):
        if (declared.name, _array_word(declared)) != (port.name, _core_word(port.dtype)):
            return f"it gives {declared.name} as {_array_word(declared)}, the graph {port.name} as {port.dtype}"
        sizes = [one.constant.size if one.HasField("constant") else None for one in made[port.name].dimensions]
        known = [one and one[0] for one in port.sizes]
        if len(sizes) != len(known) or any(
            None not in pair and len({*pair}) > 1 for pair in zip(sizes, known, strict=True)
        ):
            return f"the sizes of {port.name} are {sizes}, those of the graph {known}"
    return ""


def _array_word(declared: Any) -> str:
    from coremltools.proto import FeatureTypes_pb2

    kinds = FeatureTypes_pb2.ArrayFeatureType.ArrayDataType
    return str(kinds.Name(declared.type.multiArrayType.dataType))


def _core_word(dtype: str) -> str:
    return {"float32": "FLOAT32", "float16": "FLOAT16"}.get(dtype, "INT32")


def _declared_sizes(declared: Any) -> list[tuple[int, int]]:
    array = declared.type.multiArrayType
    ranges = [(int(one.lowerBound), int(one.upperBound)) for one in array.shapeRange.sizeRanges]
    return ranges or [(int(size), int(size)) for size in array.shape]


def _weights_problem(path: Path, spec: Any) -> str:
    """Whether every weight that the program reads lies inside of the file of weights."""
    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    places = [
        value.blobFileValue
        for one in block.operations
        for value in (
            *one.attributes.values(),
            *(bound.value for given in one.inputs.values() for bound in given.arguments),
        )
        if value.HasField("blobFileValue")
    ]
    for place in places:
        file = path / "Data" / "com.apple.CoreML" / place.fileName.removeprefix("@model_path/")
        if not file.is_file() or file.stat().st_size <= place.offset:
            return f"a weight is to be at {place.offset} of {file.name}, which is shorter or missing"
    return ""
