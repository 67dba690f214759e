"""Inductor: the captured graph compiled by torch's own compiler to C++ and oneDNN kernels, with weights frozen in."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.ops.roles import stores_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.apply import RewrittenGraph, apply_plan
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem
from ace_studio.engine.quantize.pt2e import INSTALL_LINE, dynamic_problem, is_torchao_installed, static_problem
from ace_studio.engine.quantize.weight_only import weight_only_problem
from ace_studio.engine.targets.base import Availability, Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.shared.support import NATIVE, Verdict, judge_ops, judged_by_leaves
from ace_studio.engine.targets.torch.inductor_times import with_times
from ace_studio.engine.targets.torch.prepack import pack_for_traced_sizes
from ace_studio.engine.targets.torch.program import TorchLowered, compiler_problem, load_flat_graph, pinned
from ace_studio.engine.torch_private.inductor import CompiledNode, compile_frozen, compiler_tables
from ace_studio.engine.torch_private.kernels import WrittenCode, listening_to_code, time_calls
from ace_studio.engine.torch_private.operators import functional_form, half_precision_problem, is_operator
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision
from ace_studio.records.results import OpSupport, SupportStatus


class InductorTarget(Target):
    """Compiles on this machine; the first build of a model takes tens of seconds."""

    def available(self) -> Availability:
        """Whether there is a C++ compiler."""
        problem = compiler_problem()
        install = self.row.install if problem else ""
        return Availability(ok=not problem, reason=problem, install=install, version=str(torch.__version__))

    def precision_problem(self, precision: Precision) -> str:
        """Why not."""
        if precision is Precision.FP32:
            return ""
        if precision in HALF_DTYPES:
            return half_precision_problem(HALF_DTYPES[precision])
        if precision in {Precision.INT8_STATIC, Precision.INT8_DYNAMIC}:
            return "" if is_torchao_installed() else f"int8 needs torchao: {INSTALL_LINE}"
        if precision in WEIGHT_ONLY:
            return ""
        return f"Inductor has no {precision} kernels on a CPU"

    def op_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
        problem = self.precision_problem(precision)
        if problem:
            return problem
        if precision in HALF_DTYPES:
            return cast_problem(op)
        if stores_table(op, precision):
            return ""
        if precision in WEIGHT_ONLY:
            return weight_only_problem(op, precision)
        if precision is Precision.INT8_STATIC:
            return static_problem(op)
        return dynamic_problem(op) if precision is Precision.INT8_DYNAMIC else ""

    def support(self, captured: CapturedModel) -> list[OpSupport]:
        """What the compiler writes code for, and what it leaves to PyTorch's own kernels."""
        return judge_ops(captured, _verdict)

    def build(self, job: LoweringJob) -> Lowered:
        """Rewrite the graph as the plan says, then compile it once for all sizes."""
        rewritten = apply_plan(
            job.captured, job.plan, calibration=job.calibration, reporter=job.reporter, ranges=job.ranges
        )
        with listening_to_code() as written:
            run, nodes = compile_graph(rewritten.graph_module, threads=job.threads, reporter=job.reporter)
        return InductorLowered(job, rewritten, run, nodes, written)

    def load(self, path: Path, *, threads: int) -> Callable[..., Any]:
        """Open ``model.pt2`` and compile it for this machine."""
        run, _ = compile_graph(load_flat_graph(path), threads=threads, reporter=Reporter())
        return pinned(run, threads=threads)


class InductorLowered(TorchLowered):
    """The compiled function, and what its graph looked like after all of Inductor's passes."""

    def __init__(
        self,
        job: LoweringJob,
        rewritten: RewrittenGraph,
        run: Callable[..., Sequence[Tensor]],
        nodes: Sequence[CompiledNode],
        written: WrittenCode,
    ) -> None:
        super().__init__(job, rewritten, run)
        self._nodes = nodes
        self._written = written

    def read_back(self) -> list[OpActual]:
        """Map the nodes that Inductor generated code for back to ops, and time what it wrote."""
        actuals = self.actuals(self._nodes, runtime="Inductor")
        example = [leaf.clone() for leaf in self._job.captured.examples[0].tensors()]
        calls = time_calls(self._written, lambda: self._run(*example))
        return with_times(
            actuals,
            calls,
            loops=self._written.loops,
            nodes=self._nodes,
            graph_module=self._rewritten.graph_module,
        )


_COMPILED_FAMILIES = frozenset({"aten", "prims", "quantized_decomposed"})
"""Namespaces of operators that the compiler generates code for; it calls the kernels of all others."""


def _verdict(node: fx.Node) -> Verdict:
    if not is_operator(node.target):
        return NATIVE
    if getattr(node.target, "namespace", "") not in _COMPILED_FAMILIES:
        return _fallback(str(node.target))
    tables = compiler_tables()

    def has(target: object) -> bool:
        return tables.writes(functional_form(target))

    return judged_by_leaves(node, tables.decompositions, has=has, missing=_fallback)


def _fallback(op: str) -> Verdict:
    return Verdict(
        SupportStatus.FALLBACK,
        f"The compiled code calls PyTorch's own kernel of {op}; its neighbours cannot be merged into it.",
    )


def compile_graph(
    graph_module: fx.GraphModule, *, threads: int, reporter: Reporter
) -> tuple[Callable[..., Sequence[Tensor]], list[CompiledNode]]:
    """Compile a flat graph for ``threads`` threads, which the generated code holds fixed.

    Raises: AceError(UNSUPPORTED) with the compiler's own words if it fails.
    """
    reporter.phase(Phase.LOWER, "Inductor is generating and compiling C++; the first build takes 20-90 s")
    torch.set_num_threads(threads)
    with compiler_errors("Inductor"):
        return compile_frozen(graph_module, before_folding=pack_for_traced_sizes)


@contextmanager
def compiler_errors(label: str) -> Iterator[None]:
    """Turn what the compiler raises into AceError(UNSUPPORTED) with its own words."""
    try:
        yield
    except (RuntimeError, AssertionError, TypeError, ValueError, KeyError) as error:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"{label} could not compile this graph",
            why=(str(error).strip() or type(error).__name__).splitlines()[0],
            remedy="Keep the op it names at fp32 with a rule, make its sizes static, or use another target.",
            details="".join(traceback.format_exception(error))[-20_000:],
        ) from error
