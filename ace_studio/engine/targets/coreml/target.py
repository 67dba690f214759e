"""Core ML: a package for Apple's devices, converted by coremltools.

The conversion runs anywhere, Core ML itself on macOS only. Elsewhere the package is written, read back and compared
with what the graph demands, and nothing is run: `Target.run_problem` says so.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.pt2e import INSTALL_LINE, is_torchao_installed
from ace_studio.engine.quiet import hushed
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.coreml import package
from ace_studio.engine.targets.coreml.convert import coreml_model
from ace_studio.engine.targets.coreml.quantize import INT8, coreml_op_problem, quantized_graph
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import actuals_of
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.shared.support import judge_torch_ops
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results import OpSupport

_ARTIFACT = "model.mlpackage"
_ONLY_THERE = "Core ML runs only on macOS; open the package there"
_EXECUTORCH_FILE = "executorch_debug_handle_mapping.json"
"""Written by coremltools beside every package that came from an exported program; nothing but ExecuTorch reads it."""


class CoreMlTarget(Target):
    """Writes packages everywhere, and runs them on a Mac."""

    modules = ("coremltools",)
    precisions: ClassVar[Mapping[Precision, str]] = {
        **dict.fromkeys((Precision.FP32, Precision.FP16, Precision.INT8_STATIC, Precision.INT8_WEIGHT), ""),
        Precision.INT8_DYNAMIC: "Core ML finds no activation ranges at a call: use int8-static or int8-weight",
        Precision.BF16: "Core ML has no bf16: use fp16",
        Precision.INT4_WEIGHT: "this target writes no 4-bit weights: use int8-weight",
        Precision.FP8: "Core ML has no fp8",
    }

    def run_problem(self) -> str:
        """Nothing on macOS."""
        return "" if sys.platform == "darwin" else _ONLY_THERE

    def precision_problem(self, precision: Precision) -> str:
        """Why not, for what Core ML has not or this target does not write."""
        if precision is Precision.INT8_STATIC and not is_torchao_installed():
            return f"int8-static needs torchao: {INSTALL_LINE}"
        return super().precision_problem(precision)

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays in floats."""
        return coreml_op_problem(op, precision) if precision in INT8 else ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """Operators of torch, as far as coremltools has a translation of them."""
        return judge_torch_ops(captured, "coremltools has no translation of")

    def build(self, job: LoweringJob) -> Lowered:
        """Rewrite the graph as the plan says, convert it, and on a Mac open it."""
        if job.plan.precisions & INT8:
            job.reporter.phase(Phase.COMPRESS, "int8 ops")
        rewritten = quantized_graph(job)
        job.reporter.phase(Phase.LOWER, "converting to Core ML")
        model, owners = coreml_model(rewritten.graph_module, job)
        return CoreMlLowered(job, model, owners, rewritten, run_problem=self.run_problem())

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.mlpackage`` on a Mac. Core ML chooses its own threads."""
        del threads
        self.require()
        spec = package.read_spec(path)
        if problem := self.run_problem():
            raise AceError.of(ErrorCode.UNSUPPORTED, f"{path.name} cannot be run here", why=problem)
        return opened_package(path, package.ports_of(spec, name=path.name))


class CoreMlLowered(Lowered):
    """A converted model, with the job that it was built for."""

    runs_in_torch = False

    def __init__(
        self,
        job: LoweringJob,
        model: Any,
        owners: Mapping[str, str],
        rewritten: RewrittenGraph,
        *,
        run_problem: str,
    ) -> None:
        self._job = job
        self._model = model
        self._owners = owners
        self._rewritten = rewritten
        self._spec = model.get_spec()
        self._ports = package.ports_of(self._spec, name=_ARTIFACT)
        run = _refusing(run_problem) if run_problem else opened_package(self.save(job.folder), self._ports)
        self._call = FlatCall(job.captured).around(run)

    def read_back(self) -> list[OpActual]:
        """Read the types in the program that is saved. On which unit Core ML runs an operation is not known."""
        job = self._job
        kernels = package.kernels_of_program(package.operations_of(self._spec), self._owners, job)
        folded = {op_id: f"folded into {home} in fp32" for op_id, home in self._rewritten.folded.items()}
        notes = self._rewritten.refused
        return actuals_of(job, kernels, runtime="Core ML's program", did="has", folded=folded, notes=notes)

    def save(self, folder: Path) -> Path:
        """Write ``model.mlpackage``, read it back, and compare it with what was converted."""
        path = folder / _ARTIFACT
        with hushed():
            self._model.save(str(path))
        (path / _EXECUTORCH_FILE).unlink(missing_ok=True)
        package.check_package(path, self._spec, self._ports)
        return path


def _refusing(problem: str) -> Callable[..., list[Tensor]]:
    def run(*tensors: Tensor) -> list[Tensor]:
        del tensors
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            "The Core ML package cannot be run on this machine",
            why=problem,
            remedy="Copy the package to a Mac, or use another target here.",
        )

    return run


def opened_package(path: Path, ports: package.Ports) -> Callable[..., list[Tensor]]:
    """The package behind a function over flat tensors, on whatever units Core ML chooses. Not yet run on a Mac."""
    import coremltools

    with hushed():
        model = coremltools.models.MLModel(str(path))

    def run(*tensors: Tensor) -> list[Tensor]:
        given = {port.name: _taken(port, tensor) for port, tensor in zip(ports.takes, tensors, strict=True)}
        try:
            found = model.predict(given)
        except RuntimeError as error:
            raise library_error(ErrorCode.BAD_INPUT, "Core ML cannot run the package on these inputs", error) from error
        return [_given_back(port, found[port.name]) for port in ports.gives]

    return run


def _taken(port: package.Port, tensor: Tensor) -> Any:
    """A tensor as Core ML takes it: floats as they are, everything else with 32 bits."""
    array = tensor.detach().cpu().contiguous()
    return array.numpy() if port.dtype in ("float32", "float16") else array.int().numpy()


def _given_back(port: package.Port, value: Any) -> Tensor:
    """What Core ML gives, with the type and the number of dimensions of the original."""
    found = torch.as_tensor(value).to(getattr(torch, port.dtype))
    return found.reshape(()) if not port.sizes else found
