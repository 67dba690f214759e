"""ONNX Runtime: the captured graph as ONNX, quantized so that the integer kernels fuse, and what really runs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.onnx.attention import program_with_attention
from ace_studio.engine.targets.onnx.op_support import onnxruntime_op_problem
from ace_studio.engine.targets.onnx.program import OnnxProgram
from ace_studio.engine.targets.onnx.quantize import quantize_program
from ace_studio.engine.targets.onnx.support import onnx_verdict
from ace_studio.engine.targets.onnxruntime.profile import profile_kernels
from ace_studio.engine.targets.shared.flat_call import FlatCall, as_numpy
from ace_studio.engine.targets.shared.kernels import actuals_of
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.shared.support import judge_ops
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSupport
from ace_studio.records.tensors import memory_limits, size_limits

_ARTIFACT = "model.onnx"
_SIZES_KEY = "ace_studio.sizes"
"""Entry of the file's metadata: which sizes it was proven at, in words."""
_LOG_ERRORS_ONLY = 3
_FLOAT_REASON = "ONNX Runtime's CPU kernels compute in fp32: {precision} would be converted at every op and run slower"


class OnnxRuntimeTarget(Target):
    """Runs on the CPU, or on CUDA where onnxruntime-gpu is installed and the model lives there."""

    precisions: ClassVar[Mapping[Precision, str]] = {
        **dict.fromkeys(
            (
                Precision.FP32,
                Precision.INT8_STATIC,
                Precision.INT8_DYNAMIC,
                Precision.INT8_WEIGHT,
                Precision.INT4_WEIGHT,
            ),
            "",
        ),
        Precision.FP16: _FLOAT_REASON.format(precision="fp16"),
        Precision.BF16: _FLOAT_REASON.format(precision="bf16"),
        Precision.FP8: "ONNX Runtime has no fp8 kernels on a CPU",
    }

    def device_problem(self, device: torch.device) -> str:
        """Why not, where this build of the runtime has no provider for the device."""
        try:
            providers_for(device)
        except AceError as error:
            return f"{error.problem.what}: {error.problem.why}"
        return ""

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        return onnxruntime_op_problem(op, precision)

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """What the ONNX exporter can write."""
        self.require()
        return judge_ops(captured, onnx_verdict)

    def build(self, job: LoweringJob) -> Lowered:
        """Export once, apply the plan, open a session."""
        program = program_with_attention(job)
        model, notes = quantize_program(program, job, _session_maker(job))
        job.reporter.advance(None, "optimizing for ONNX Runtime")
        return OnnxRuntimeLowered(job, program, model, notes=notes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.onnx`` on the CPU."""
        self.require()
        try:
            return _flat_function(make_session(path.read_bytes(), threads=threads))
        except AceError as error:
            raise AceError.of(
                ErrorCode.BAD_FILE, f"ONNX Runtime cannot read {path.name}", why=error.problem.why, where=str(path)
            ) from error


class OnnxRuntimeLowered(Lowered):
    """A session, and the model it was opened from."""

    runs_in_torch = False

    def __init__(self, job: LoweringJob, program: OnnxProgram, model: Any, *, notes: Mapping[str, str]) -> None:
        self._job = job
        self._program = program
        self._model = model
        self._notes = notes
        self._session = _session_maker(job)(model)
        self._call = FlatCall(job.captured).around(_flat_function(self._session))

    def bare(self, example: Example) -> Callable[[], object]:
        """``session.run`` on arrays."""
        feed = _feed([found.name for found in self._session.get_inputs()], example.tensors())
        outputs = [found.name for found in self._session.get_outputs()]
        return lambda: self._session.run(outputs, feed)

    def read_back(self) -> list[OpActual]:
        """Profile the traced example and map every kernel back to its ops."""
        job = self._job
        kernels = profile_kernels(
            self._model,
            self._program,
            feed=_feed(self._program.input_names, job.captured.example.tensors()),
            options=session_options(threads=job.threads),
            providers=providers_for(job.device),
            planned=job.plan.assigned,
            heavy=job.captured.table,
            folder=job.folder,
        )
        return actuals_of(job, kernels, runtime="ONNX Runtime", folded=self._program.folded, notes=self._notes)

    def save(self, folder: Path) -> Path:
        """Write ``model.onnx``."""
        path = folder / _ARTIFACT
        inputs = self._job.captured.inputs
        if words := [one.words for one in size_limits(inputs)] + [one.words for one in memory_limits(inputs)]:
            facts = {one.key: one.value for one in self._model.metadata_props}
            facts[_SIZES_KEY] = "; ".join(words)
            import onnx

            onnx.helper.set_model_props(self._model, facts)
        path.write_bytes(self._model.SerializeToString())
        return path


def session_options(*, threads: int) -> Any:
    """Options of every session: so many threads, all graph optimizations, silence, no spinning between calls."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _LOG_ERRORS_ONLY
    # Threads that still spin after a call would take time from whatever is measured next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def providers_for(device: torch.device) -> list[str]:
    """Execution providers for a device, the best first.

    Raises: AceError(NOT_INSTALLED) if the device is a GPU and this build of ONNX Runtime has no provider for it.
    """
    import onnxruntime

    if device.type == "cpu":
        return ["CPUExecutionProvider"]
    if device.type == "cuda" and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]
    raise AceError.of(
        ErrorCode.NOT_INSTALLED,
        f"This ONNX Runtime cannot run on {device.type}",
        why=f"it has {', '.join(onnxruntime.get_available_providers())}",
        remedy="Install onnxruntime-gpu, or measure on the CPU.",
    )


def make_session(model: bytes, *, threads: int, device: torch.device | None = None) -> Any:
    """Open a serialized model.

    Raises: AceError(UNSUPPORTED) in the runtime's words if it refuses the model.
    """
    import onnxruntime

    providers = providers_for(device or torch.device("cpu"))
    try:
        return onnxruntime.InferenceSession(model, session_options(threads=threads), providers=providers)
    except _runtime_errors() as error:
        raise library_error(
            ErrorCode.UNSUPPORTED,
            "ONNX Runtime refuses the model",
            error,
            remedy="Choose another target, or keep the op that it names at fp32.",
        ) from error


def _runtime_errors() -> tuple[type[Exception], ...]:
    """All exceptions of the runtime's compiled part, which have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state

    known = vars(onnxruntime_pybind11_state).values()
    return (RuntimeError, *(one for one in known if isinstance(one, type) and issubclass(one, Exception)))


def _session_maker(job: LoweringJob) -> Callable[[Any], Any]:
    return lambda model: make_session(model.SerializeToString(), threads=job.threads, device=job.device)


def _feed(names: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Any]:
    return {name: as_numpy(tensor) for name, tensor in zip(names, tensors, strict=True)}


def _flat_function(session: Any) -> Callable[..., list[Tensor]]:
    names = [found.name for found in session.get_inputs()]
    outputs = [found.name for found in session.get_outputs()]
    errors = _runtime_errors()

    def run(*tensors: Tensor) -> list[Tensor]:
        try:
            arrays = session.run(outputs, _feed(names, tensors))
        except errors as error:
            raise library_error(
                ErrorCode.UNSUPPORTED,
                "ONNX Runtime cannot run the model on these inputs",
                error,
                remedy="Choose another target for this model, or give the inputs a size that was traced.",
            ) from error
        # The runtime makes new arrays for the outputs of every call, so wrapping them without a copy is safe.
        return [torch.from_numpy(array) for array in arrays]

    return run
