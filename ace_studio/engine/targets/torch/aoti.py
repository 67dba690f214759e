"""AOTInductor: compiles what Inductor compiles ahead of time, into a package of machine code that needs no compiler.

Graph and kernels are the same as Inductor's. The artifact differs: it is built for this kind of processor and for one
number of threads, and starts in milliseconds.
"""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.quantize.apply import RewrittenGraph, apply_plan
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.torch.inductor import InductorTarget, compiler_errors
from ace_studio.engine.targets.torch.prepack import pack_for_traced_sizes
from ace_studio.engine.targets.torch.program import PROGRAM_NAME, FlatFunction, TorchLowered, pinned
from ace_studio.engine.torch_private.inductor import CompiledNode, open_package, package_frozen
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.safe_file import link_or_copy
from ace_studio.records.tensors import SizeLimit, size_limits

_THREADS, _INPUTS = "ace_threads", "ace_inputs"
_READ_ERRORS = (RuntimeError, OSError, ValueError, KeyError, AssertionError)


class AotiTarget(InductorTarget):
    """Takes what Inductor takes on a CPU, at the same precisions and for the same reasons."""

    device_problem = Target.device_problem

    def build(self, job: LoweringJob) -> Lowered:
        """Rewrite the graph as the plan says, compile it once for all sizes, and open the package."""
        rewritten = apply_plan(
            job.captured, job.plan, calibration=job.calibration, reporter=job.reporter, ranges=job.ranges
        )
        path = job.folder / PROGRAM_NAME
        nodes = build_package(rewritten.graph_module, path, job)
        job.reporter.warn(
            "artifact-limits",
            f"The package runs on {job.threads} thread{'s' * (job.threads != 1)} and on processors like this one "
            f"({platform.machine()}): both are fixed in its code",
            where=self.name,
        )
        return AotiLowered(job, rewritten, path, nodes)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.pt2``; it keeps the number of threads that it was built for."""
        run, built_for = checked_package(path)
        return pinned(run, threads=built_for or threads)


class AotiLowered(TorchLowered):
    """The opened package."""

    def __init__(self, job: LoweringJob, rewritten: RewrittenGraph, path: Path, nodes: Sequence[CompiledNode]) -> None:
        super().__init__(job, rewritten, checked_package(path)[0])
        self._path = path
        self._nodes = nodes

    def read_back(self) -> list[OpActual]:
        """Map the nodes that code was generated for back to ops."""
        return self.actuals(self._nodes, runtime="AOTInductor")

    def save(self, folder: Path) -> Path:
        """Put the package into the folder too; the running code was unpacked before."""
        path = folder / PROGRAM_NAME
        if path != self._path:
            link_or_copy(self._path, path)
        return path


def build_package(graph_module: fx.GraphModule, path: Path, job: LoweringJob) -> list[CompiledNode]:
    """Compile for ``job.threads`` threads, and write what the inputs must look like into the package.

    Raises: AceError(NOT_INSTALLED) without a working C++ compiler; else what the compiler raises.
    """
    job.reporter.phase(Phase.LOWER, "AOTInductor is generating and compiling C++; the first build takes 20-90 s")
    torch.set_num_threads(job.threads)
    notes = {_THREADS: str(job.threads), _INPUTS: json.dumps(_expected_inputs(job.captured))}
    with compiler_errors("AOTInductor"):
        ranges = job.captured.program.range_constraints
        return package_frozen(graph_module, path, before_folding=pack_for_traced_sizes, notes=notes, ranges=ranges)


def _expected_inputs(captured: CapturedModel) -> list[dict[str, Any]]:
    """Type and sizes of every flat input; null for a dynamic one, and the limits of those that have some."""
    limits = size_limits(captured.inputs)
    return [
        {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "sizes": [None if axis in dynamic else size for axis, size in enumerate(tensor.shape)],
            "limits": [limit for limit in limits if limit.leaf == leaf],
        }
        for leaf, (tensor, dynamic) in enumerate(zip(captured.example.tensors(), captured.dynamic_dims(), strict=True))
    ]


@dataclass(frozen=True)
class _InputCheck:
    """Type and sizes of an input. The machine code itself does not check them."""

    dtype: str
    sizes: tuple[int | None, ...]
    limits: tuple[SizeLimit, ...] = ()

    def problem(self, tensor: Tensor) -> str:
        """Why the tensor does not fit; empty if it does."""
        dtype = str(tensor.dtype).removeprefix("torch.")
        fits = len(tensor.shape) == len(self.sizes) and all(
            wanted is None or size == wanted for size, wanted in zip(tensor.shape, self.sizes, strict=True)
        )
        if fits and dtype == self.dtype:
            beyond = (one.words for one in self.limits if not one.allows(tensor.shape[one.dim]))
            return next((f"{tuple(tensor.shape)}, and {words}" for words in beyond), "")
        wanted = ", ".join("any" if size is None else str(size) for size in self.sizes)
        return f"{dtype} {tuple(tensor.shape)} where {self.dtype} ({wanted}) was compiled"


def checked_package(path: Path) -> tuple[FlatFunction, int]:
    """Open a package behind a check of its inputs, with the number of threads that it was built for (0: unknown).

    Raises: AceError(BAD_FILE) if it is not there or is no package.
    """
    try:
        package, notes = open_package(path)
        checks = [
            _InputCheck(one["dtype"], tuple(one["sizes"]), tuple(SizeLimit(*row) for row in one.get("limits", ())))
            for one in json.loads(notes[_INPUTS])
        ]
    except _READ_ERRORS as error:
        raise AceError.of(
            ErrorCode.BAD_FILE,
            f"{path.name} cannot be opened as an AOTInductor package",
            why=(str(error).strip() or type(error).__name__).splitlines()[0],
            remedy="Export the model again, on a machine like the one that runs it.",
            where=str(path),
        ) from error

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        for number, (check, tensor) in enumerate(zip(checks, tensors, strict=True)):
            if problem := check.problem(tensor):
                raise AceError.of(
                    ErrorCode.BAD_INPUT,
                    "The package was compiled for other inputs",
                    why=f"input {number} is {problem}",
                    remedy="Give an example of this size when tracing, so that the dimension becomes dynamic.",
                )
        return package(*tensors)

    return run, int(notes.get(_THREADS, 0))
