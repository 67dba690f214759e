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
from ace_studio.engine.load.refused import refused_file
from ace_studio.engine.load.sniff import bad_file
from ace_studio.engine.ops.onnx_order import sort_nodes
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import FileFacts, StoredTensor

TENSOR_TYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
    10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip
"""ONNX's number for an element type -> torch's type."""
_MOST_SHOWN = 20
_QUIET = 4
"""Errors are raised, so they need not be printed."""
_WEIGHTS_APART = 4
"""The first IR version whose weights need not be inputs."""
Dim = int | str


class OnnxModule(nn.Module):
    """Runs the file unchanged in ONNX Runtime, with torch's current number of threads."""

    def __init__(self, model: Any, path: Path) -> None:
        """Take a ``ModelProto`` with its weights. Raises: AceError(UNSUPPORTED) for inputs that are no tensors."""
        super().__init__()
        self.model = model
        self.path = path
        self.inputs = list(model.graph.input)
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
    """Open the file as a module.

    Raises: AceError(NOT_INSTALLED) without onnx and onnxruntime; AceError(BAD_FILE) if it is damaged, refused by the
        runtime, or its weights are not there; AceError(UNSUPPORTED) for inputs that are no tensors.
    """
    read_facts(job.path)
    module = _with_signature(OnnxModule(read_model(job.path), job.path))
    module._session()
    files = tuple(job.path.parent / name for name in _external_files(_parse(job.path, with_weights=False)))
    return OpenedModel(module.eval(), files=files)


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
    notes += [f"input {_words(value)}" for value in model.graph.input]
    notes += [f"output {_words(value)}" for value in model.graph.output]
    tensors = tuple(
        StoredTensor(name=tensor.name, dtype=_type_word(tensor.data_type), shape=tuple(tensor.dims))
        for tensor in model.graph.initializer
    )
    return FileFacts(tensors=tensors, notes=tuple(notes))


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
    """The ``ModelProto``, whose inputs are those of a call: before IR version 4 every weight was listed among them."""
    import onnx  # noqa: PLC0415 - optional package
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415 - with onnx

    try:
        model = onnx.load(str(path), load_external_data=with_weights)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        missing = with_weights and not isinstance(error, DecodeError)
        raise bad_file(
            path,
            "has weights in another file, which cannot be read" if missing else "is a damaged or incomplete ONNX file",
            why=_first_line(error),
            remedy="put the files with its weights beside it" if missing else "export or download it again",
        ) from error
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.input if value.name in weights]:
        model.graph.input.remove(value)
    model.ir_version = max(model.ir_version, _WEIGHTS_APART)
    return model


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
