"""Judges how a target takes each operator of a captured graph, before anything is built."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from torch import fx

from ace_studio.engine.flow import Captured, CapturedModel
from ace_studio.engine.ops.decompositions import leaf_operators
from ace_studio.engine.ops.everyday import EVERYDAY_OPS
from ace_studio.engine.torch_private.operators import is_operator
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import GraphTable
from ace_studio.records.results import OpSupport, SupportStatus, TargetSupport


@dataclass(frozen=True)
class Verdict:
    """How a target takes one operator."""

    status: SupportStatus = SupportStatus.NATIVE
    instead: str = ""


NATIVE = Verdict()
Judge = Callable[[fx.Node], Verdict]


def judge_ops(captured: CapturedModel, judge: Judge) -> list[OpSupport]:
    """One entry per op of the graph. Each operator is judged once, by its first call."""
    nodes = {node.name: node for node in captured.program.graph.nodes}
    known: dict[Any, Verdict] = {}
    found = []
    table = captured.table
    for row in table.op_rows():
        op_id, op = table.op_id[row], table.op[row]
        node = nodes[op_id]
        if op in EVERYDAY_OPS or not callable(node.target):
            verdict = NATIVE
        else:
            verdict = known.setdefault(node.target, NATIVE) if node.target in known else judge(node)
            known[node.target] = verdict
        found.append(OpSupport(id=op_id, op=op, status=verdict.status, instead=verdict.instead))
    return found


def judge_torch_ops(captured: CapturedModel, missing: str) -> list[OpSupport]:
    """As `judge_ops`, for a target that takes torch's own operators as far as its build shows.

    Args:
        captured: The graph.
        missing: Why an operator of a user's own or of a library is not there, before its name.
    """

    def judge(node: fx.Node) -> Verdict:
        if not is_operator(node.target) or getattr(node.target, "namespace", "aten") in {"aten", "prims"}:
            return NATIVE
        return Verdict(SupportStatus.UNSUPPORTED, f"{missing} {node.target}.")

    return judge_ops(captured, judge)


def judged_by_leaves(
    node: fx.Node,
    table: Mapping[Any, Callable[..., Any]],
    *,
    has: Callable[[Any], bool],
    missing: Callable[[str], Verdict],
) -> Verdict:
    """The verdict on an operator that a target has, or that decomposes into operators that it has.

    Args:
        node: A call of the operator.
        table: Operator -> its decomposition.
        has: Whether the target has an operator.
        missing: Makes the verdict from the name of a missing operator.
    """
    if has(node.target):
        return NATIVE
    if not is_operator(node.target):
        return NATIVE  # arithmetic with sizes, and Python's own functions
    leaves = leaf_operators(node, table, is_leaf=has)
    if leaves is None:
        if node.target in table:
            return Verdict(SupportStatus.DECOMPOSED, "It is written with other ops while it is built.")
        return missing(str(node.target))
    lacking = [str(leaf) for leaf in leaves if not has(leaf)]
    if lacking:
        return missing(lacking[0])
    shown = ", ".join(dict.fromkeys(str(leaf).split(".")[1] for leaf in leaves if leaf is not node.target))
    return Verdict(SupportStatus.DECOMPOSED, f"It is written with {_short(shown) or 'other ops'}.")


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77].rsplit(",", 1)[0] + ", ..."


def judge_model(judge: Callable[[CapturedModel], list[OpSupport]], captured: Captured) -> list[OpSupport]:
    """How a target takes each op of a graph, or of every subgraph, with the op ids of the model's table."""
    return [
        msgspec.structs.replace(op, id=graph.id_in_model(op.id))
        for graph in captured.graphs()
        for op in judge(graph.captured)
    ]


def summarize(target: str, ops: Sequence[OpSupport]) -> TargetSupport:
    """The counts, and what is not native."""
    counts = Counter(str(one.status) for one in ops)
    shown = tuple(one for one in ops if one.status is not SupportStatus.NATIVE)
    return TargetSupport(target=target, counts=dict(counts), ops=shown)


def unsupported_problem(label: str, ops: Sequence[OpSupport], table: GraphTable, *, others: str = "") -> Problem | None:
    """Why a target cannot be built at all, with the first op that it cannot take; None if it takes all.

    Args:
        label: The target's name for people.
        ops: Its verdicts.
        table: Where the ops come from.
        others: Targets that do take all ops, in words.
    """
    lacking = [one for one in ops if one.status is SupportStatus.UNSUPPORTED]
    if not lacking:
        return None
    first = lacking[0]
    more = len(lacking) - 1
    return Problem(
        code=ErrorCode.UNSUPPORTED,
        what=f"{label} cannot take {first.op} ({first.id})" + (f", and {more} more ops" if more else ""),
        why=first.instead,
        remedy="Write the op with others, or use a target that takes it" + (f": {others}." if others else "."),
        where=op_place(table, first.id),
    )


def op_place(table: GraphTable, op_id: str) -> str:
    """``file:line, module path`` of an op, as far as they are known."""
    row = table.op_id.index(op_id)
    place = f"{table.files[table.file[row]]}:{table.line[row]}" if table.file[row] >= 0 else ""
    module = f"module {table.module[row]}" if table.module[row] else ""
    return ", ".join(part for part in (place, module) if part)
