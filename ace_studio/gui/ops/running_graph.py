"""The graph that a run executes: fused ops are merged into their host, folded and gone ops are left out."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from ace_studio.gui.ops.facts import Fate, OpFate
from ace_studio.records.graph import GraphTable, OpKind

_RUNS = frozenset({Fate.AS_PLANNED, Fate.OTHERWISE, Fate.UNKNOWN})
_COLUMNS = ("op_id", "kind", "op", "module", "shape", "dtype", "device", "file", "line", "flops", "weight_bytes",
            "output_bytes", "piece", "attributes", "weights")  # fmt: skip
"""Columns of a graph with an entry per row."""


@dataclass(frozen=True, kw_only=True)
class RunningGraph:
    """The ops of a captured graph that run, and where the others went."""

    table: GraphTable
    home: Mapping[str, str]
    """Op of the captured graph -> the op of `table` that computes it. Ops that nothing computes are missing."""
    members: Mapping[str, tuple[str, ...]]
    """Op of `table` -> the ops that it computes, itself included, in the order of the captured graph."""

    def homes(self, op_ids: tuple[str, ...]) -> tuple[str, ...]:
        """The ops of `table` that compute these, each once."""
        return tuple(dict.fromkeys(self.home[op_id] for op_id in op_ids if op_id in self.home))

    def all_members(self, op_ids: tuple[str, ...]) -> tuple[str, ...]:
        """The captured ops that these ops of `table` compute."""
        return tuple(member for op_id in op_ids for member in self.members.get(op_id, (op_id,)))


def running_graph(graph: GraphTable, fates: Mapping[str, OpFate]) -> RunningGraph:
    """Reduce a captured graph to the ops that run.

    An op that is fused or folded into one that runs becomes a part of it. An op that is gone, or whose host is
    unknown, is left out; its readers then read its inputs. Without fates, or if nothing runs by itself, the
    graph does not change.
    """
    row_of = {op_id: row for row, op_id in enumerate(graph.op_id)}
    home = [_home(row, graph, fates, row_of) for row in range(len(graph))]
    if not any(home[row] == row for row in graph.op_rows()):
        home = list(range(len(graph)))
    kept = [row for row in range(len(graph)) if home[row] == row]
    place = {row: at for at, row in enumerate(kept)}
    groups: dict[int, list[int]] = {row: [] for row in kept}
    for row, host in enumerate(home):
        if host >= 0:
            groups[host].append(row)
    edges = sorted((place[source], place[target]) for source, target in _edges(graph, home))
    columns = {name: getattr(graph, name) for name in _COLUMNS}
    table = replace(
        graph,
        **{name: tuple(column[row] for row in kept) if column else () for name, column in columns.items()},
        edge_source=tuple(source for source, _ in edges),
        edge_target=tuple(target for _, target in edges),
    )
    ids = graph.op_id
    return RunningGraph(
        table=_with_sums(table, graph, [groups[row] for row in kept]),
        home={ids[row]: ids[host] for row, host in enumerate(home) if host >= 0},
        members={ids[row]: tuple(ids[member] for member in groups[row]) for row in kept},
    )


def _home(row: int, graph: GraphTable, fates: Mapping[str, OpFate], row_of: Mapping[str, int]) -> int:
    """Row of the op that computes a row; -1 if none does."""
    seen = set[int]()
    while graph.kind[row] is OpKind.OP and row not in seen:
        seen.add(row)
        one = fates.get(graph.op_id[row])
        if one is None or one.fate in _RUNS:
            return row
        row = row_of.get(one.into, -1)
        if row < 0:
            return -1
    return -1 if row in seen else row


def _edges(graph: GraphTable, home: list[int]) -> set[tuple[int, int]]:
    """Edges between kept rows. A removed row connects its readers to its inputs."""
    pairs = sorted(zip(graph.edge_target, graph.edge_source, strict=True))
    behind: dict[int, set[int]] = {}
    found: set[tuple[int, int]] = set()
    for target, source in pairs:
        sources = {home[source]} if home[source] >= 0 else behind.get(source, set())
        if home[target] < 0:
            behind.setdefault(target, set()).update(sources)
        else:
            found.update((one, home[target]) for one in sources if one != home[target])
    return found


def _with_sums(table: GraphTable, graph: GraphTable, groups: list[list[int]]) -> GraphTable:
    """Sum the costs of merged ops; the output is that of the last one."""
    last = [group[-1] for group in groups]
    return replace(
        table,
        shape=tuple(graph.shape[row] for row in last),
        dtype=tuple(graph.dtype[row] for row in last),
        output_bytes=tuple(graph.output_bytes[row] for row in last),
        flops=tuple(sum(graph.flops[row] for row in group) for group in groups),
        weight_bytes=tuple(sum(graph.weight_bytes[row] for row in group) for group in groups),
    )
