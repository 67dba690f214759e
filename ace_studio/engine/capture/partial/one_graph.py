"""Joins the tables of all subgraphs into one, with the graph breaks as rows between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from torch import nn

from ace_studio.engine.capture.partial.recording import ForwardStep
from ace_studio.engine.flow import Subgraph
from ace_studio.engine.graph_table import graph_table_of
from ace_studio.records.graph import GraphTable, OpKind
from ace_studio.records.results import GraphBreak
from ace_studio.records.tensors import InputFinding

BREAK_OP = "graph break"
_COLUMNS = (
    "op_id", "kind", "op", "module", "shape", "dtype", "device", "file", "line", "flops", "weight_bytes", "output_bytes"
)  # fmt: skip
_WORDS = ("attributes", "weights")
"""Columns that an older table does not have."""


def join_tables(
    subgraphs: Sequence[Subgraph],
    breaks: Sequence[GraphBreak],
    steps: Sequence[ForwardStep],
    *,
    module: nn.Module,
    findings: Sequence[InputFinding],
) -> tuple[GraphTable, tuple[GraphBreak, ...]]:
    """The table of the whole model, and the breaks with the ids of their rows.

    Rows are in the order in which the first forward reaches them. An edge from one subgraph to another leads through
    the break between them, if there is one.
    """
    joiner = _Joiner(subgraphs)
    joiner.add_inputs(findings)
    waiting = {(one.file, one.line): one for one in breaks}
    numbered: list[GraphBreak] = []
    for step in steps:
        if step.is_break:
            if (found := waiting.pop(step.line, None)) is not None:
                numbered.append(joiner.add_break(found, number=len(numbered) + 1))
        else:
            joiner.add_subgraph(step)
    for found in waiting.values():  # these occur at other sizes only
        numbered.append(joiner.add_break(found, number=len(numbered) + 1))
    for subgraph in subgraphs:
        joiner.add_subgraph(ForwardStep(name=subgraph.name))
    joiner.add_output()
    return graph_table_of(joiner.columns, joiner.edges, files=joiner.files, module=module), tuple(numbered)


@dataclass
class _Joiner:
    subgraphs: Sequence[Subgraph]
    columns: dict[str, list[Any]] = field(default_factory=dict)
    edges: dict[tuple[int, int], None] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    """Rows of the model's inputs."""
    gate: list[int] = field(default_factory=list)
    """Rows that stand for everything before the last break: the break itself, at first the inputs."""
    results: dict[str, list[int]] = field(default_factory=dict)
    """Subgraphs since the last break -> the rows that make their results."""
    done: set[str] = field(default_factory=set)

    # --- rows ---

    def add_inputs(self, findings: Sequence[InputFinding]) -> None:
        for found in findings:
            shape = "x".join(dim.symbol or (str(dim.size) if dim.verdict == "static" else "?") for dim in found.dims)
            self.inputs.append(
                self._row(op_id=found.name, kind=OpKind.INPUT, op="input", shape=shape, dtype=found.dtype)
            )
        self.gate = list(self.inputs)

    def add_break(self, found: GraphBreak, *, number: int) -> GraphBreak:
        name = f"break_{number}"
        row = self._row(op_id=name, kind=OpKind.BREAK, op=BREAK_OP, module=found.module, line=found.line)
        self.columns["file"][row] = self.files.setdefault(found.file, len(self.files))
        self._connect(self._before(), [row])
        self.gate, self.results = [row], {}
        return msgspec.structs.replace(found, id=name)

    def add_output(self) -> None:
        self._connect(self._before(), [self._row(op_id="output", kind=OpKind.OUTPUT, op="output")])

    def _before(self) -> Iterable[int]:
        """The rows before the next break or output: results of the subgraphs since the last break, or that break."""
        return [row for rows in self.results.values() for row in rows] or self.gate

    def add_subgraph(self, step: ForwardStep) -> None:
        subgraph = next((one for one in self.subgraphs if one.name == step.name), None)
        if subgraph is None or step.name in self.done:
            return
        self.done.add(step.name)
        table = subgraph.captured.table
        new = self._copy_rows(subgraph, table)
        readers: dict[int, list[int]] = {}
        outputs: list[int] = []
        for source, target in zip(table.edge_source, table.edge_target, strict=True):
            if table.kind[target] is OpKind.OUTPUT:
                outputs += [new[source]] if source in new else []
            elif table.kind[source] is OpKind.INPUT:
                readers.setdefault(source, []).append(new[target])
            elif source in new:
                self.edges[new[source], new[target]] = None
        takers = [row for row, kind in enumerate(table.kind) if kind is OpKind.INPUT]
        for place, row in enumerate(takers):
            maker = step.reads[place] if place < len(step.reads) else None
            self._connect(self._sources(maker), readers.get(row, []))
        self.results[subgraph.name] = list(dict.fromkeys(outputs)) or list(new.values())[-1:]

    def _sources(self, source: int | str | None) -> list[int]:
        if isinstance(source, int) and source < len(self.inputs):
            return [self.inputs[source]]
        return self.results.get(source, self.gate) if isinstance(source, str) else self.gate

    def _connect(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        for source in sources:
            for target in targets:
                self.edges[source, target] = None

    def _copy_rows(self, subgraph: Subgraph, table: GraphTable) -> dict[int, int]:
        """Row of the subgraph's table -> row here, for its ops."""
        number = [one.name for one in self.subgraphs].index(subgraph.name)
        new = {}
        for row in table.op_rows():
            values = {name: getattr(table, name)[row] for name in _COLUMNS}
            values |= {name: (getattr(table, name) or [""] * len(table))[row] for name in _WORDS}
            values["op_id"] = subgraph.id_in_model(table.op_id[row])
            file = table.file[row]
            values["file"] = self.files.setdefault(table.files[file], len(self.files)) if file >= 0 else -1
            new[row] = self._row(**values, piece=number)
        return new

    def _row(self, **values: Any) -> int:
        empty = {"module": "", "shape": "", "dtype": "", "device": "", "file": -1, "line": 0, "piece": -1}
        filled = dict.fromkeys(_COLUMNS, 0) | dict.fromkeys(_WORDS, "") | empty | values
        for name, value in filled.items():
            self.columns.setdefault(name, []).append(value)
        return len(self.columns["op_id"]) - 1
