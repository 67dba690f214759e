"""Inductor: the captured graph compiled by torch's own compiler to C++ and oneDNN kernels, with weights frozen in."""

import dataclasses
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.ops.families import LAYOUT_OPS
from ace_studio.engine.ops.roles import stores_table
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.apply import RewrittenGraph, apply_plan
from ace_studio.engine.quantize.casts import HALF_DTYPES, cast_problem
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.quantize.pt2e import INSTALL_LINE, dynamic_problem, is_torchao_installed, static_problem
from ace_studio.engine.quantize.weight_only import weight_only_problem
from ace_studio.engine.targets.base import Availability, Lowered, LoweringJob, OpActual, Target
from ace_studio.engine.targets.shared.support import NATIVE, Verdict, judge_ops, judged_by_leaves
from ace_studio.engine.targets.torch.prepack import pack_for_traced_sizes
from ace_studio.engine.targets.torch.program import TorchLowered, compiler_problem, load_flat_graph, pinned
from ace_studio.engine.torch_private.inductor import CompiledNode, compile_frozen, compiler_tables
from ace_studio.engine.torch_private.kernels import TimedCall, WrittenCode, listening_to_code, time_calls
from ace_studio.engine.torch_private.operators import functional_form, half_precision_problem, is_operator
from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.messages import Phase
from ace_studio.records.recipes.plan import WEIGHT_ONLY, Precision
from ace_studio.records.results import OpSupport, SupportStatus
from ace_studio.records.system_faults import system_problem


class InductorTarget(Target):
    """Compiles on this machine; the first build of a model takes tens of seconds."""

    def available(self) -> Availability:
        """Whether there is a C++ compiler. Without torchao it is available, but not at int8."""
        problem = compiler_problem()
        lines = (self.row.install if problem else "", "" if is_torchao_installed() else INSTALL_LINE)
        return Availability(
            ok=not problem,
            reason=problem,
            install=" && ".join(filter(None, lines)),
            version=str(torch.__version__),
        )

    def device_problem(self, device: torch.device) -> str:
        """It compiles for a GPU too."""
        return "" if device.type == "cuda" else super().device_problem(device)

    def precision_problem_on(self, device: torch.device, precision: Precision) -> str:
        """The integer kernels that this target calls are those of the CPU."""
        if device.type == "cpu" or precision is Precision.FP32 or precision in HALF_DTYPES:
            return ""
        return f"the {precision} kernels that Inductor calls are those of the CPU; torchao-cuda has a GPU's"

    def precision_problem(self, precision: Precision) -> str:
        """Why not."""
        if precision is Precision.FP32 or precision in WEIGHT_ONLY:
            return ""
        if precision in HALF_DTYPES:
            return half_precision_problem(HALF_DTYPES[precision])
        if precision in {Precision.INT8_STATIC, Precision.INT8_DYNAMIC}:
            return "" if is_torchao_installed() else f"int8 needs torchao: {INSTALL_LINE}"
        return f"Inductor has no {precision} kernels that this target uses; torchao-cuda has them on a GPU"

    def kernel_problem(self, op: str, precision: Precision) -> str:
        """Why an op stays fp32."""
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
        if self._job.device.type != "cpu":  # the clock would show how long it takes to start the kernels
            return actuals
        example = [leaf.clone() for leaf in self._job.captured.example.tensors()]
        calls = time_calls(self._written, lambda: self._run(*example))
        return with_times(
            actuals, calls, loops=self._written.loops, nodes=self._nodes, graph_module=self._rewritten.graph_module
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

    Raises: AceError(NOT_INSTALLED) without a working C++ compiler; else what the compiler raises.
    """
    reporter.phase(Phase.LOWER, "Inductor is generating and compiling code; the first build takes 20-90 s")
    torch.set_num_threads(threads)
    with compiler_errors("Inductor"):
        return compile_frozen(graph_module, before_folding=pack_for_traced_sizes)


@contextmanager
def compiler_errors(label: str) -> Iterator[None]:
    """Turn what is raised without a working C++ compiler into AceError(NOT_INSTALLED)."""
    try:
        yield
    except (RuntimeError, AssertionError, TypeError, ValueError, KeyError) as error:
        if system_problem(error) is not None or "InvalidCxxCompiler" not in f"{type(error).__name__}: {error}":
            raise
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            f"{label}: the C++ compiler does not work; install g++, or name another in the variable CXX",
            why=message_of(error),
            remedy="Install g++ (Debian: apt-get install g++), or name another compiler in the variable CXX.",
            details="".join(traceback.format_exception(error))[-20_000:],
        ) from error


def with_times(
    actuals: Sequence[OpActual],
    calls: Sequence[TimedCall],
    *,
    loops: Sequence[tuple[str, tuple[str, ...]]],
    nodes: Sequence[CompiledNode],
    graph_module: fx.GraphModule,
) -> list[OpActual]:
    """The actuals with times; of the ops in one generated loop, the last gets the time.

    A library call belongs to the next node of the compiled graph that calls the same operator: torch keeps their order.
    The time of a loop without an op of its own (it quantizes, or changes a layout) is added to the next call with one.

    Args:
        actuals: What became of every op.
        calls: The calls of one run.
        loops: What each generated loop does, in the order in which the code calls them.
        nodes: The nodes that code was generated for.
        graph_module: The graph before compilation, whose nodes know their ops.
    """
    nodes_of_ops = [node for node in graph_module.graph.nodes if OP_ID in node.meta]
    ids = {node.name: node.meta[OP_ID] for node in nodes_of_ops}
    order = {name: index for index, name in enumerate(ids)}
    layout = {node.meta[OP_ID] for node in nodes_of_ops if str(node.target) in LAYOUT_OPS}
    found = {one.op_id: one for one in actuals}
    waiting = list(nodes)
    written = list(loops)
    times_ms: dict[str, float] = {}
    pending_ms = 0.0
    for call in calls:
        origins = _loop_origins(call, written) if call.is_loop else _library_origins(call, waiting)
        known = sorted((name for name in origins if name in ids), key=order.__getitem__)
        homes = list(dict.fromkeys(_home(ids[name], found) for name in known))
        # A loop may recompute the result of an earlier call; the time stays with that call.
        homes = [op_id for op_id in homes if op_id not in times_ms or not call.is_loop]
        if not homes:
            pending_ms += call.latency_ms
            continue
        main = next((op_id for op_id in reversed(homes) if op_id not in layout), homes[-1])
        times_ms[main] = times_ms.get(main, 0.0) + call.latency_ms + pending_ms
        pending_ms = 0.0
        _join(homes, main, found)
    return [
        dataclasses.replace(found[one.op_id], latency_ms=times_ms.get(one.op_id, one.latency_ms)) for one in actuals
    ]


def _loop_origins(call: TimedCall, written: list[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """The nodes of the next loop of this name; loops are called in the order in which they were written."""
    for index, (name, origins) in enumerate(written):
        if name == call.name:
            del written[index]
            return origins
    return ()


def _library_origins(call: TimedCall, waiting: list[CompiledNode]) -> tuple[str, ...]:
    operator = _operator(call.name)
    for index, node in enumerate(waiting):
        if _operator(node.target) == operator:
            del waiting[index]
            return node.origins
    return ()


def _operator(name: str) -> str:
    """``onednn.qconv_pointwise`` of ``onednn.qconv_pointwise.default fused``: torch may choose another overload."""
    return ".".join(name.partition(" ")[0].split(".")[:2])


def _home(op_id: str, found: Mapping[str, OpActual]) -> str:
    """The op whose kernel computes this one."""
    one = found.get(op_id)
    return one.fused_into if one is not None and one.fused_into else op_id


def _join(homes: Sequence[str], main: str, found: dict[str, OpActual]) -> None:
    """Mark every op of a shared loop as fused into the main one."""
    for op_id in homes:
        one = found.get(op_id)
        if op_id != main and one is not None and not one.fused_into:
            found[op_id] = dataclasses.replace(
                one, fused_into=main, reason=f"{one.reason}; in one generated loop with {main}"
            )
