"""Joining the tables of subgraphs into one."""

from torch import nn

from ace_studio.engine.capture.partial.one_graph import BREAK_OP, join_tables
from ace_studio.engine.capture.partial.recording import ForwardStep
from ace_studio.records.graph import OpKind
from ace_studio.records.results import GraphBreak
from ace_studio.records.tensors import DimFinding, DimVerdict, InputFinding

X = InputFinding(
    name="x",
    dtype="float32",
    dims=(
        DimFinding(index=0, verdict=DimVerdict.DYNAMIC, size=2, symbol="s0"),
        DimFinding(index=1, verdict=DimVerdict.STATIC, size=4),
        DimFinding(index=2, verdict=DimVerdict.UNKNOWN, size=1),
    ),
)


def test_breaks_are_rows_between_the_inputs_and_the_output_in_the_order_of_the_forward() -> None:
    breaks = [GraphBreak(file="net.py", line=line, reason="", module="blocks.1") for line in (9, 3)]
    steps = [ForwardStep(line=("net.py", 3)), ForwardStep(line=("net.py", 9))]
    table, numbered = join_tables([], breaks, steps, module=nn.Linear(1, 1), findings=[X])
    assert table.op_id == ("x", "break_1", "break_2", "output")
    assert table.kind == (OpKind.INPUT, OpKind.BREAK, OpKind.BREAK, OpKind.OUTPUT)
    assert table.op[1] == BREAK_OP and table.line[1:3] == (3, 9)
    assert list(zip(table.edge_source, table.edge_target, strict=True)) == [(0, 1), (1, 2), (2, 3)]
    assert [(one.line, one.id) for one in numbered] == [(3, "break_1"), (9, "break_2")]
    assert table.module_paths == ("blocks", "blocks.1")
    assert table.shape[0] == "s0x4x?"


def test_a_break_that_the_first_forward_does_not_reach_comes_last() -> None:
    met, other = (GraphBreak(file="net.py", line=line, reason="") for line in (3, 9))
    _, numbered = join_tables([], [other, met], [ForwardStep(line=("net.py", 3))], module=nn.Linear(1, 1), findings=[])
    assert [one.line for one in numbered] == [3, 9]
