"""An ONNX file as a module that ONNX Runtime computes; it is the baseline of all candidates made from the file."""

from __future__ import annotations

import importlib.util
import inspect
import keyword
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.flow import Example
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.onnx.header import read_facts
from ace_studio.engine.load.proposals import ProposedInput, ProposedRow, examples_of, specs_of
from ace_studio.engine.load.refused import refused_file
from ace_studio.engine.load.sniff import bad_file
from ace_studio.engine.ops.onnx_order import sort_nodes
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import FileFacts, StoredTensor
from ace_studio.records.tensors import ValueSource

TENSOR_TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip
"""ONNX's number for an element type -> torch's type."""
_MOST_SHOWN = 20
_QUIET = 3
_BATCHES, _LENGTHS, _SIDES = (1, 2, 3), (16, 24, 20), (224, 256, 192)
"""Example values for open sizes: a batch, a length, the side of an image."""
_PICTURE_DIMS = 4
_VOCABULARY = 100
_SAME_NUMBERS = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten")
"""Ops that give the numbers that they take."""
Dim = int | str


class OnnxModule(nn.Module):
    """Runs the file unchanged in ONNX Runtime, with torch's current number of threads."""

    def __init__(self, model: Any, path: Path) -> None:
        """Take a ``ModelProto`` with its weights. Raises: AceError(UNSUPPORTED) for inputs that are no tensors."""
        super().__init__()
        self.model = model
        self.path = path
        weights = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [value for value in model.graph.input if value.name not in weights]
        self.names = python_names([value.name for value in self.inputs])
        for value in (*self.inputs, *model.graph.output):
            _refuse_what_is_no_tensor(value, path)
        for number, tensor in enumerate(model.graph.initializer):
            self.register_buffer(f"weight_{number}", _as_tensor(tensor, path))
        self._sessions: dict[int, Any] = {}
        self._content = model.SerializeToString()

    @property
    def is_rounded(self) -> bool:
        """Whether weights of the file are in half precision or in 8 bits."""
        return any(one.dtype.itemsize < 4 and one.dtype is not torch.bool for one in self.buffers())

    def __deepcopy__(self, memo: Any) -> OnnxModule:
        """Return the same module, which has no state that could change."""
        return self

    def forward(self, *args: Tensor, **kwargs: Tensor) -> Any:
        """Return the only result, or all of them by name. Inputs come by position, or by their names in Python.

        Raises: AceError(BAD_INPUT) if the file does not take these inputs.
        """
        given = dict(zip(self.names, args, strict=False)) | kwargs
        if missing := [name for name in self.names if name not in given]:
            what, remedy = f"{self.path.name} lacks the input {missing[0]}", "give every input"
            raise AceError.of(ErrorCode.BAD_INPUT, what, why=f"it takes {', '.join(self.names)}", remedy=remedy)
        names = [value.name for value in self.model.graph.output]
        try:
            arrays = self._session().run(names, self._feed(given))
        except _runtime_errors() as error:
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                f"ONNX Runtime cannot run {self.path.name} on these inputs",
                why=_first_line(error),
                remedy="give inputs of the types and sizes that the file names; inspect lists them",
                where=str(self.path),
                details=str(error)[:20_000],
            ) from error
        results = [torch.from_numpy(array.copy()) for array in arrays]
        return results[0] if len(results) == 1 else dict(zip(python_names(names), results, strict=True))

    def bare(self, example: Example) -> Callable[[], object]:
        """``session.run`` on arrays."""
        feed = self._feed(dict(zip(self.names, example.args, strict=False)) | dict(example.kwargs))
        names, session = [value.name for value in self.model.graph.output], self._session()
        return lambda: session.run(names, feed)

    def _feed(self, given: Mapping[str, Tensor]) -> dict[str, Any]:
        pairs = zip(self.inputs, self.names, strict=True)
        return {value.name: given[name].detach().cpu().contiguous().numpy() for value, name in pairs}

    def _session(self) -> Any:
        """The session for torch's current number of threads."""
        import onnxruntime  # noqa: PLC0415 - optional package

        threads = torch.get_num_threads()
        if threads not in self._sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            options.log_severity_level = _QUIET
            options.add_session_config_entry("session.force_spinning_stop", "1")
            try:
                self._sessions[threads] = onnxruntime.InferenceSession(
                    self._content, options, providers=["CPUExecutionProvider"]
                )
            except _runtime_errors() as error:
                raise refused_file(self.path, _first_line(error), library="ONNX Runtime", details=str(error)) from error
        return self._sessions[threads]


def build_from_onnx(job: LoadJob) -> OpenedModel:
    """Open the file as a module, with examples of the sizes that it names.

    Raises: AceError(NOT_INSTALLED) without onnx and onnxruntime; AceError(BAD_FILE) if it is damaged, refused by the
        runtime, or its weights are not there; AceError(UNSUPPORTED) for inputs that are no tensors.
    """
    read_facts(job.path)
    module = _with_signature(OnnxModule(read_model(job.path), job.path))
    module._session()
    files = tuple(job.path.parent / name for name in _external_files(_parse(job.path, with_weights=False)))
    return OpenedModel(module.eval(), examples_of(example_rows(module), module), are_made_up=True, files=files)


def describe_onnx(path: Path) -> FileFacts:
    """Describe ops, inputs, outputs and weights; without the onnx package only the ops."""
    facts = read_facts(path)
    counts = sorted(facts.op_counts.items(), key=lambda pair: (-pair[1], pair[0]))
    notes = [
        f"{sum(facts.op_counts.values())} ops, " + ", ".join(facts.opsets) + f", IR version {facts.ir_version}",
        *([f"written by {facts.producer}"] if facts.producer else []),
        *(f"{count} x {name}" for name, count in counts[:_MOST_SHOWN]),
    ]
    if importlib.util.find_spec("onnx") is None:
        return FileFacts(notes=(*notes, f"opening it needs onnx: {_install_line()}"))
    model = _parse(path, with_weights=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    notes += [f"input {_words(value)}" for value in inputs]
    notes += [f"output {_words(value)}" for value in model.graph.output]
    tensors = tuple(
        StoredTensor(name=tensor.name, dtype=_type_word(tensor.data_type), shape=tuple(tensor.dims))
        for tensor in model.graph.initializer
    )
    is_of_tensors = all(value.type.tensor_type.elem_type in TENSOR_TYPES for value in inputs)
    names = python_names([value.name for value in inputs])
    rows = proposed_rows(names, inputs, vocabularies(model.graph)) if is_of_tensors else ()
    return FileFacts(tensors=tensors, notes=tuple(notes), inputs=specs_of(rows[:2]))


def read_model(path: Path) -> Any:
    """Read the ``ModelProto`` with its weights, and its nodes in order. Raises: AceError(NOT_INSTALLED or BAD_FILE)."""
    missing = [package for package in ("onnx", "onnxruntime") if importlib.util.find_spec(package) is None]
    if missing:
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            f"{path.name} needs {' and '.join(missing)} to be run",
            why="an ONNX file is computed by ONNX Runtime",
            remedy=_install_line(),
            where=str(path),
        )
    model = _parse(path, with_weights=True)
    sort_nodes(model.graph)
    return model


def _parse(path: Path, *, with_weights: bool) -> Any:
    import onnx  # noqa: PLC0415 - optional package
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415 - with onnx

    try:
        return onnx.load(str(path), load_external_data=with_weights)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        missing = with_weights and not isinstance(error, DecodeError)
        raise bad_file(
            path,
            "has weights in another file, which cannot be read" if missing else "is a damaged or incomplete ONNX file",
            why=_first_line(error),
            remedy="put the files with its weights beside it" if missing else "export or download it again",
        ) from error


def _install_line() -> str:
    return f"{sys.executable} -m pip install onnx onnxruntime"


def python_names(names: Sequence[str]) -> list[str]:
    """Unique Python identifiers for names of ONNX."""
    taken: dict[str, None] = {}
    tried = Counter[str]()
    for name in names:
        plain = re.sub(r"\W", "_", name) or "input"
        plain = f"_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain
        one = plain
        while one in taken:
            tried[plain] += 1
            one = f"{plain}_" if tried[plain] == 1 else f"{plain}_{tried[plain]}"
        taken[one] = None
    return list(taken)


def dims_of(value: Any) -> tuple[Dim, ...]:
    """Sizes of a value: a number, or a name if the file leaves it open."""
    dims: list[Dim] = []
    for index, dim in enumerate(value.type.tensor_type.shape.dim):
        is_fixed = dim.HasField("dim_value") and dim.dim_value > 0
        dims.append(dim.dim_value if is_fixed else dim.dim_param or f"{value.name}_{index}")
    return tuple(dims)


def dims_of_inputs(module: OnnxModule) -> list[tuple[Dim, ...]]:
    """Sizes of every input: numbers, or names if the file leaves them open."""
    return [dims_of(value) for value in module.inputs]


def example_rows(module: OnnxModule) -> tuple[ProposedRow, ...]:
    """Two rows with different values of the open sizes; one if no size is open."""
    return proposed_rows(module.names, module.inputs, vocabularies(module.model.graph))[:2]


def vocabularies(graph: Any) -> dict[str, int]:
    """Input -> rows of the smallest table of weights that it indexes, directly or after a change of type or shape."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    came_from: dict[str, str] = {value.name: value.name for value in graph.input}
    found: dict[str, int] = {}
    for node in graph.node:
        first, second = (*node.input, "", "")[:2]  # a damaged file may have fewer
        if node.op_type in _SAME_NUMBERS and first in came_from:
            came_from |= dict.fromkeys(node.output[:1], came_from[first])
        elif node.op_type == "Gather" and first in rows and (name := came_from.get(second)):
            found[name] = min(found.get(name, rows[first]), rows[first])
    return found


def proposed_rows(
    names: Sequence[str], inputs: Sequence[Any], vocabulary: Mapping[str, int]
) -> tuple[ProposedRow, ...]:
    """Three rows with different values of the open sizes; one if no size is open."""
    sizes: dict[str, tuple[int, int, int]] = {}
    for value in inputs:
        dims = dims_of(value)
        for index, dim in enumerate(dims):
            if isinstance(dim, str):
                sizes.setdefault(dim, _usual_sizes(index, len(dims)))
    turns = range(3 if sizes else 1)
    return tuple(
        tuple(_proposed(name, value, sizes, turn, vocabulary) for name, value in zip(names, inputs, strict=True))
        for turn in turns
    )


def _usual_sizes(index: int, dims: int) -> tuple[int, int, int]:
    if index == 0:
        return _BATCHES
    return _SIDES if dims == _PICTURE_DIMS and index > 1 else _LENGTHS


def _proposed(
    name: str, value: Any, sizes: Mapping[str, Sequence[int]], turn: int, vocabulary: Mapping[str, int]
) -> ProposedInput:
    shape = tuple(sizes[dim][turn] if isinstance(dim, str) else dim for dim in dims_of(value))
    dtype = TENSOR_TYPES[value.type.tensor_type.elem_type]
    is_mask = "mask" in name and not dtype.is_floating_point
    below = vocabulary.get(value.name, 2 if dtype is torch.bool or "type" in name else _VOCABULARY)
    return ProposedInput(
        name, shape, dtype=dtype, values=ValueSource.ONES if is_mask else ValueSource.RANDOM, below=below
    )


def onnx_example(module: OnnxModule, sizes: Mapping[str, int], *, seed: int) -> Example:
    """An example with random values and these values of the open sizes."""
    table = {name: (size,) * 3 for name, size in sizes.items()}
    pairs = zip(module.names, module.inputs, strict=True)
    known = vocabularies(module.model.graph)
    return Example(args=tuple(_proposed(name, value, table, 0, known).tensor(seed=seed) for name, value in pairs))


def _with_signature(module: OnnxModule) -> OnnxModule:
    """Give the module's forward a signature, so that inputs are named everywhere as in the file."""
    plain = type(module).forward

    def forward(self: OnnxModule, *args: Tensor, **kwargs: Tensor) -> Any:
        return plain(self, *args, **kwargs)

    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, either) for name in ("self", *module.names)]
    vars(forward)["__signature__"] = inspect.Signature(parameters)
    module.__class__ = type("OnnxModule", (OnnxModule,), {"forward": forward})
    return module


def _refuse_what_is_no_tensor(value: Any, path: Path) -> None:
    if value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type in TENSOR_TYPES:
        return
    raise AceError.of(
        ErrorCode.UNSUPPORTED,
        f"{path.name} takes or gives something that is no tensor of numbers: {value.name}",
        why="sequences, maps and texts cannot be compared as tensors",
        remedy="export the part of the model that works on tensors",
        where=str(path),
    )


def _words(value: Any) -> str:
    kind = value.type.tensor_type.elem_type
    return f"{value.name}: {_type_word(kind)} {'x'.join(map(str, dims_of(value))) or 'scalar'}"


def _type_word(kind: int) -> str:
    return str(TENSOR_TYPES.get(kind, "other")).removeprefix("torch.")


def _as_tensor(tensor: Any, path: Path) -> Tensor:
    """The values of an initializer. Raises: AceError(BAD_FILE) if its sizes, its type and its bytes disagree."""
    from onnx import numpy_helper  # noqa: PLC0415 - optional package

    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        why = f"its type is {tensor.data_type}, its sizes are {list(tensor.dims)[:8]}: {_first_line(error)}"
        what = f"holds a tensor {tensor.name} that cannot be read"
        raise bad_file(path, what, why=why, remedy="export or download it again") from error
    try:
        return torch.from_numpy(array.copy())
    except TypeError:  # a type that numpy or torch lacks: only its bytes are counted
        return torch.from_numpy(array.reshape(-1).view("uint8").copy())


def _external_files(model: Any) -> list[str]:
    """Names of external files that hold weights, for a model whose weights are not loaded."""
    entries = (entry for tensor in model.graph.initializer for entry in tensor.external_data)
    return sorted({entry.value for entry in entries if entry.key == "location"})


def _runtime_errors() -> tuple[type[Exception], ...]:
    from onnxruntime.capi import onnxruntime_pybind11_state  # noqa: PLC0415 - optional package

    known = vars(onnxruntime_pybind11_state).values()
    return (RuntimeError, ValueError, *(one for one in known if isinstance(one, type) and issubclass(one, Exception)))


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
