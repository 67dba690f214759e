"""Assigns the times of compiled code to the ops that it computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torch import fx

from ace_studio.engine.ops.families import LAYOUT_OPS
from ace_studio.engine.quantize.flat_graph import OP_ID
from ace_studio.engine.targets.base import OpActual
from ace_studio.engine.torch_private.inductor import CompiledNode
from ace_studio.engine.torch_private.kernels import TimedCall


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
