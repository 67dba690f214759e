"""Maps what a runtime executes back to the ops of the captured graph.

Every rewriting (by the exporter, the optimizer, the runtime) keeps the names of most values. So a node of the new graph
stands for the nodes of the old graph between its inputs and its outputs. That holds for fusions, folded batch norms and
quantized kernels, without a list of known patterns. Nodes are called steps here, of whatever graph they are.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import torch

from ace_studio.engine.flow import BoundPlan
from ace_studio.engine.targets.base import LoweringJob, OpActual
from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import is_weighted
from ace_studio.records.recipes.plan import Precision

_DECORATION = re.compile(r"^fused |(_step_\d)?(_quant)?(_dynamic(_tensor)?)?(_nchwc|_nhwc)?(_token_\d+)?$")
"""What our rewriting and ONNX Runtime's add to the name of a node, or of its result."""

_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "FakeQuantize"})
"""Kernels between precisions; an op that only they compute (a ReLU in front of an unsigned grid) is fused."""

FLOAT_WORDS: Mapping[torch.dtype | None, Precision] = {
    torch.float32: Precision.FP32,
    torch.bfloat16: Precision.BF16,
    torch.float16: Precision.FP16,
}


@dataclass(frozen=True)
class GraphStep:
    """One node of any graph: its unique name, and the names of the values that it reads and writes."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """One thing that a runtime executes."""

    name: str
    kind: str
    """What the runtime calls it, such as ``QLinearConv``."""
    precision: str
    """The `Precision` word it computes in."""
    op_ids: tuple[str, ...]
    """Ops of the captured graph that it computes, the main one first."""
    device: str = "cpu"
    latency_ms: float | None = None
    is_arithmetic: bool = False
    """A convolution or a matrix product, whose precision decides for its op."""
    is_conversion: bool = False
    """Only changes the type or the layout of a value between other kernels."""


def covered_steps(
    new: Sequence[GraphStep], old: Sequence[GraphStep], *, inputs: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Name of each new step -> names of the old steps it stands for, the one nearest to its output first.

    Constants are left out, because several steps share them. A new step without an output of the old graph stands for
    the old step, or the maker of the old value, whose name is part of its own.

    Args:
        new: The rewritten graph.
        old: The graph it was made from.
        inputs: Names of the old graph's inputs.
    """
    alive = _depending_on(inputs, old)
    producer = {value: step for step in old if step.name in alive for value in step.outputs}
    by_name = {step.name: step for step in old}
    starts = {step.name: _starts(step, producer, by_name) for step in new}
    made = {value for step in new for value in step.outputs}
    made |= {value for found in starts.values() for old_step in found for value in old_step.outputs}
    return {step.name: _walk_back(starts[step.name], producer, stop=made | set(step.inputs)) for step in new}


def _starts(step: GraphStep, producer: Mapping[str, GraphStep], by_name: Mapping[str, GraphStep]) -> list[GraphStep]:
    """The old steps with the results of this new step."""
    found = [producer[value] for value in step.outputs if value in producer]
    if found:
        return found
    names = (step.name, _DECORATION.sub("", step.name))
    return [known[name] for name in names for known in (by_name, producer) if name in known][:1]


def _depending_on(inputs: Iterable[str], steps: Sequence[GraphStep]) -> set[str]:
    """Names of the steps that compute something from the inputs; the steps may be in any order."""
    readers: dict[str, list[GraphStep]] = {}
    for step in steps:
        for value in step.inputs:
            readers.setdefault(value, []).append(step)
    names: set[str] = set()
    waiting = list(inputs)
    while waiting:  # by hand: networkx takes eight times as long, 8 s at 50,000 steps
        for step in readers.get(waiting.pop(), ()):
            if step.name not in names:
                names.add(step.name)
                waiting += step.outputs
    return names


def _walk_back(starts: Sequence[GraphStep], producer: Mapping[str, GraphStep], *, stop: set[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting = list(starts)
    while waiting:
        step = waiting.pop(0)
        if step.name in found:
            continue
        found[step.name] = None
        waiting += [producer[value] for value in step.inputs if value in producer and value not in stop]
    return tuple(found)


def owners_of(
    covered: Mapping[str, Sequence[str]], owners: Mapping[str, Sequence[str]], heavy: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """Name of each new step -> op ids that own it; one of ``heavy`` (the weighted ops) first, else the last to run."""
    result = {}
    for name, old_names in covered.items():
        ids = list(dict.fromkeys(op_id for old in old_names for op_id in owners.get(old, ())))
        result[name] = tuple(sorted(ids, key=lambda op_id: op_id not in heavy))
    return result


def adopt_orphans(steps: Sequence[GraphStep], owners: dict[str, tuple[str, ...]]) -> None:
    """Assign a step without owners to an op around it: that of its readers if they agree, else that of its source."""
    producer = {value: step.name for step in steps for value in step.outputs}
    readers: dict[str, list[str]] = {}
    for step in steps:
        for value in step.inputs:
            if value in producer and owners.get(step.name):
                readers.setdefault(producer[value], []).append(owners[step.name][0])
    for step in steps:
        if owners.get(step.name):
            continue
        sources = [owners[producer[value]][0] for value in step.inputs if value in producer and owners[producer[value]]]
        around = list(dict.fromkeys(readers.get(step.name, ())))
        owners[step.name] = tuple(around if len(around) == 1 else (sources or around)[:1])


def heavy_ops(table: GraphTable) -> frozenset[str]:
    """Ids of the weighted ops."""
    return frozenset(table.op_id[row] for row in table.op_rows() if is_weighted(table.op[row]))


def actuals_of(
    job: LoweringJob,
    kernels: Iterable[Kernel],
    *,
    runtime: str,
    did: str = "ran",
    folded: Mapping[str, str],
    notes: Mapping[str, str] = MappingProxyType({}),
) -> list[OpActual]:
    """One entry per op of the job's table, in row order.

    Args:
        job: Its table and its plan.
        kernels: What the runtime executes.
        runtime: Its name in the reasons.
        did: What it did with the kernels; another word than ``ran`` where they were read from a file and not run.
        folded: Op id -> why no kernel computes it.
        notes: Op id -> why the quantizer left it, or part of it, as it was, or what it did instead.
    """
    return _ReadBack(job.captured.table, job.plan, runtime, did, folded, notes).ops(kernels)


@dataclass
class _ReadBack:
    table: GraphTable
    plan: BoundPlan
    runtime: str
    did: str
    folded: Mapping[str, str]
    notes: Mapping[str, str]

    def ops(self, kernels: Iterable[Kernel]) -> list[OpActual]:
        main: dict[str, list[Kernel]] = {}
        inside: dict[str, Kernel] = {}
        for kernel in map(self._at_its_true_precision, kernels):
            for position, op_id in enumerate(kernel.op_ids):
                if position == 0:
                    main.setdefault(op_id, []).append(kernel)
                else:
                    inside.setdefault(op_id, kernel)
        return [
            self._one(self.table.op_id[row], main.get(self.table.op_id[row], []), inside.get(self.table.op_id[row]))
            for row in self.table.op_rows()
        ]

    def _at_its_true_precision(self, kernel: Kernel) -> Kernel:
        """The kernel at fp32 if its 8-bit values are an image, an index or a truth value: those are not quantized."""
        if kernel.precision != Precision.INT8_STATIC or not kernel.op_ids:
            return kernel
        ops = set(kernel.op_ids)
        reads = {source for op_id in ops for source in self._sources.get(op_id, ())} - ops
        is_unquantized = ops <= self._integers or (reads and reads <= self._integers and not ops & self._weighted)
        return replace(kernel, precision=Precision.FP32) if is_unquantized else kernel

    @cached_property
    def _integers(self) -> frozenset[str]:
        """Rows whose result is integers or truth values in the captured graph."""
        rows = zip(self.table.op_id, self.table.dtype, strict=True)
        return frozenset(name for name, dtype in rows if dtype.startswith(("bool", "int", "uint")))

    @cached_property
    def _weighted(self) -> frozenset[str]:
        """Rows that read stored tensors."""
        return frozenset(name for name, size in zip(self.table.op_id, self.table.weight_bytes, strict=True) if size)

    @cached_property
    def _sources(self) -> Mapping[str, set[str]]:
        """Row -> the rows whose results it reads."""
        sources: dict[str, set[str]] = {}
        for source, target in zip(self.table.edge_source, self.table.edge_target, strict=True):
            sources.setdefault(self.table.op_id[target], set()).add(self.table.op_id[source])
        return sources

    def _one(self, op_id: str, kernels: list[Kernel], fused_into: Kernel | None) -> OpActual:
        if kernels and all(kernel.kind in _QUANTIZERS for kernel in kernels):
            return OpActual(op_id=op_id, actual="fused", device=kernels[0].device, reason=f"done by {kernels[0].kind}")
        if kernels:
            return self._executed(op_id, kernels)
        if fused_into is not None:
            home = fused_into.op_ids[0]
            reason = f"part of the {fused_into.kind} kernel of {home} ({fused_into.precision})"
            return OpActual(op_id=op_id, actual="fused", device=fused_into.device, reason=reason, fused_into=home)
        if op_id in self.folded:
            return OpActual(op_id=op_id, actual="folded", reason=self.folded[op_id])
        return OpActual(op_id=op_id, actual="fused", reason=f"{self.runtime} has no kernel of its own for it")

    def _executed(self, op_id: str, kernels: list[Kernel]) -> OpActual:
        working = [kernel for kernel in kernels if not kernel.is_conversion] or kernels
        deciding = [kernel for kernel in working if kernel.is_arithmetic] or self._of_values(op_id, working)
        deciding = sorted(deciding, key=lambda kernel: -(kernel.latency_ms or 0.0))
        times = [kernel.latency_ms for kernel in kernels if kernel.latency_ms is not None]
        return OpActual(
            op_id=op_id,
            actual=deciding[0].precision,
            device=deciding[0].device,
            latency_ms=sum(times) if times else None,
            reason=self._reason(op_id, kernels, deciding),
        )

    def _of_values(self, op_id: str, kernels: list[Kernel]) -> list[Kernel]:
        """Those of an op's kernels that handle floats: beside them, 8-bit ones of an op at fp32 handle a mask."""
        floats = [kernel for kernel in kernels if kernel.precision != Precision.INT8_STATIC]
        return floats if floats and self.plan.precision_of(op_id) is Precision.FP32 else kernels

    def _reason(self, op_id: str, kernels: list[Kernel], deciding: list[Kernel]) -> str:
        planned = self.plan.precision_of(op_id)
        kinds = ", ".join(dict.fromkeys(kernel.kind for kernel in deciding[:4]))
        words = f"{self.runtime} {self.did} {kinds}"
        precisions = sorted({kernel.precision for kernel in deciding})
        if len(precisions) > 1:
            return self._noted(op_id, f"{words}; its {len(kernels)} kernels are at {' and '.join(precisions)}")
        if deciding[0].precision != planned:
            return self._noted(op_id, f"planned {planned}, but {words} at {deciding[0].precision}")
        if planned is Precision.FP32:
            return f"{words}; {self.plan.ops[op_id].reason}" if op_id in self.plan.ops else words
        return self._noted(op_id, words)

    def _noted(self, op_id: str, words: str) -> str:
        return f"{words}: {self.notes[op_id]}" if op_id in self.notes else words
