"""Shared by the targets that run in torch: running a rewritten graph, and its artifact, a ``.pt2`` program."""

import dataclasses
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel, Example
from ace_studio.engine.quantize.apply import RewrittenGraph
from ace_studio.engine.quantize.flat_graph import flat_graph, put_state_back
from ace_studio.engine.targets.base import Lowered, LoweringJob, OpActual
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.engine.targets.shared.kernels import actuals_of, heavy_ops
from ace_studio.engine.targets.shared.library_error import library_error
from ace_studio.engine.targets.torch.read_back import kernels_of
from ace_studio.engine.torch_private.exporting import DYNAMIC, export_program, serialize_error
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.engine.torch_private.operators import register_quantized_ops
from ace_studio.records.errors import AceError, ErrorCode, explained
from ace_studio.records.safe_file import native_stream
from ace_studio.records.tensors import size_limits

PROGRAM_NAME = "model.pt2"
_NOT_STORED = re.compile(r"Failed serializing node (\w+)")

FlatFunction = Callable[..., Sequence[Tensor]]


class TorchLowered(Lowered):
    """A rewritten graph behind a function over flat tensors."""

    def __init__(self, job: LoweringJob, rewritten: RewrittenGraph, run: FlatFunction) -> None:
        self._job = job
        self._rewritten = rewritten
        self._run = pinned(run, threads=job.threads)
        self._call = FlatCall(job.captured).around(self._run)

    def bare(self, example: Example) -> Callable[[], object]:
        """The compiled function itself."""
        tensors = example.tensors()
        return lambda: self._run(*tensors)

    def begin_again(self) -> None:
        """In the graph, whose memory compiled code shares."""
        put_state_back(self._rewritten.graph_module, self._job.captured.program)

    def twin(self) -> Callable[..., Any] | None:
        """The rewritten graph, op by op."""
        run = pinned(fx.Interpreter(self._rewritten.graph_module).run, threads=self._job.threads)
        return FlatCall(self._job.captured).around(run)

    def actuals(self, nodes: Sequence[CompiledNode], *, runtime: str) -> list[OpActual]:
        """What became of every op, given the nodes that run."""
        table, plan = self._job.captured.table, self._job.plan
        found = kernels_of(nodes, self._rewritten.graph_module, plan.assigned, heavy=heavy_ops(table))
        kernels = [dataclasses.replace(kernel, device=str(self._job.device)) for kernel in found]
        folded = {op_id: f"folded into {home} in fp32" for op_id, home in self._rewritten.folded.items()}
        actuals = actuals_of(self._job, kernels, runtime=runtime, folded=folded)
        return [self._with_refusal(actual) for actual in actuals]

    def _with_refusal(self, actual: OpActual) -> OpActual:
        refusal = self._rewritten.refused.get(actual.op_id)
        return dataclasses.replace(actual, reason=f"{refusal}; {actual.reason}") if refusal else actual

    def save(self, folder: Path) -> Path:
        """Export the rewritten graph and write ``model.pt2``."""
        path = folder / PROGRAM_NAME
        with torch.no_grad():
            put_state_back(self._rewritten.graph_module, self._job.captured.program)
            program = reexport(self._rewritten.graph_module, self._job.captured)
        program.example_inputs = None  # would be pickled into the file, with the whole memory that they are views of
        try:
            with native_stream(path) as stream:
                torch.export.save(program, stream)
        except serialize_error() as error:
            op = _NOT_STORED.search(str(error))
            raise library_error(
                ErrorCode.UNSUPPORTED,
                f"torch cannot write {op[1] if op else 'this graph'} into a program file (.pt2)",
                error,
                remedy="Use result.module in the process that built it, or replace the op in the model.",
            ) from error
        return path


def reexport(graph_module: fx.GraphModule, captured: CapturedModel) -> torch.export.ExportedProgram:
    """The rewritten graph as a program of flat tensors, with the dynamic sizes of the capture and their ranges."""
    shapes: list[dict[int, object]] = [dict.fromkeys(dims, DYNAMIC) for dims in captured.dynamic_dims()]
    for limit in size_limits(captured.inputs):
        shapes[limit.leaf][limit.dim] = DYNAMIC(min=limit.low, max=limit.high)
    inputs = tuple(tensor.contiguous() for tensor in captured.example.tensors())
    return export_program(graph_module, inputs, {}, dynamic_shapes=tuple(shapes), strict=False)


def load_flat_graph(path: Path) -> fx.GraphModule:
    """Open an artifact that `TorchLowered.save` wrote. It is a program: open only what you trust.

    Raises: AceError(BAD_FILE) if it is not there or is not a program of torch.export.
    """
    register_quantized_ops()
    what, remedy = f"{path.name} cannot be opened as a torch.export program", "Export the model again."
    errors = (OSError, RuntimeError, ValueError, KeyError, zipfile.BadZipFile)
    with explained(ErrorCode.BAD_FILE, what, remedy=remedy, where=path, of=errors):
        program = torch.export.load(path)
    return flat_graph(program)


def pinned(run: FlatFunction, *, threads: int) -> FlatFunction:
    """``run`` with torch's thread count set to ``threads``, without gradients, on contiguous inputs.

    Compiled code fixes the strides of its inputs; a transposed view must be copied first.
    Calling it raises AceError(BAD_INPUT) for sizes that the code was not built for.
    """

    def call(*tensors: Tensor) -> Sequence[Tensor]:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        try:
            with torch.no_grad():
                return run(*[tensor.contiguous() for tensor in tensors])
        except AssertionError as error:  # compiled code asserts the sizes that it was built for
            raise AceError.of(
                ErrorCode.BAD_INPUT,
                "The compiled model was built for other sizes than this input has",
                why=str(error).partition("\n")[0],
                remedy="If the shape table calls the dimension static, give an example of this size when tracing; if "
                "it calls it dynamic, the compiler fixed it: take another target.",
            ) from error

    return call


def compiler_problem() -> str:
    """Empty if Inductor can build code here, else what is missing."""
    if sys.platform == "win32":
        return "" if shutil.which("cl") else "no C++ compiler: cl.exe is not on the PATH"
    named = os.environ.get("CXX", "")
    if any(shutil.which(name) for name in ([named] if named else ["g++", "clang++", "c++"])):
        return ""
    return f"no C++ compiler: {named or 'g++'} was not found; install it, or name another in the variable CXX"
