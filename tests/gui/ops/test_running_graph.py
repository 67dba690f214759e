"""The graph that really runs: nothing is lost without a word, and what is left hangs together."""

import networkx
from hypothesis import given, settings
from hypothesis import strategies as st

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.ops.facts import Fate, OpFate
from ace_studio.gui.ops.running_graph import running_graph
from ace_studio.records.graph import OpKind
from tests.gui.graph_tables import layered_table, table_of, tables

CHAIN = table_of(
    [("x", "input", ""), ("conv", "aten.conv2d.default", "a"), ("bn", "aten.batch_norm.default", "a"),
     ("relu", "aten.relu.default", "b"), ("fc", "aten.linear.default", "b"), ("output", "output", "")],
    edges=[(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5)],
)  # fmt: skip
RUNS = OpFate(fate=Fate.AS_PLANNED)


def edges_of(table):
    ids = table.op_id
    return {(ids[source], ids[to]) for source, to in zip(table.edge_source, table.edge_target, strict=True)}


def test_what_is_fused_or_folded_is_drawn_with_the_op_that_does_it():
    fates = {
        "conv": RUNS, "bn": OpFate(fate=Fate.FOLDED, into="conv"),
        "relu": OpFate(fate=Fate.FUSED, into="bn"), "fc": RUNS,
    }  # fmt: skip
    found = running_graph(CHAIN, fates)
    assert found.table.op_id == ("x", "conv", "fc", "output")
    assert edges_of(found.table) == {("x", "conv"), ("conv", "fc"), ("fc", "output")}
    assert found.members["conv"] == ("conv", "bn", "relu")
    assert found.homes(("relu", "bn", "fc")) == ("conv", "fc")
    assert found.table.flops[1] == sum(CHAIN.flops[1:4])


def test_through_what_is_gone_lead_the_edges_of_what_it_read():
    fates = {"conv": RUNS, "bn": OpFate(fate=Fate.GONE), "relu": OpFate(fate=Fate.FUSED), "fc": RUNS}
    found = running_graph(CHAIN, fates)
    assert edges_of(found.table) == {("x", "conv"), ("conv", "fc"), ("x", "fc"), ("fc", "output")}
    assert "bn" not in found.home


def test_a_run_of_which_nobody_says_what_runs_keeps_the_graph():
    gone = {op_id: OpFate(fate=Fate.GONE) for op_id in CHAIN.op_id}
    for fates in ({}, gone):
        found = running_graph(CHAIN, fates).table
        assert found.op_id == CHAIN.op_id
        assert edges_of(found) == edges_of(CHAIN)


def test_ops_that_are_said_to_be_fused_into_each_other_are_left_out_and_not_looked_for_for_ever():
    fates = dict.fromkeys(CHAIN.op_id, RUNS) | {
        "bn": OpFate(fate=Fate.FUSED, into="relu"), "relu": OpFate(fate=Fate.FUSED, into="bn")
    }  # fmt: skip
    assert running_graph(CHAIN, fates).table.op_id == ("x", "conv", "fc", "output")


@settings(max_examples=60, deadline=None)
@given(tables(), st.data())
def test_every_way_of_the_captured_graph_is_a_way_of_the_running_one(table, data):
    ids = [table.op_id[row] for row in table.op_rows()]
    fates = {}
    for op_id in ids:
        fate = data.draw(st.sampled_from([Fate.AS_PLANNED, Fate.FUSED, Fate.FOLDED, Fate.GONE, Fate.UNKNOWN]))
        fates[op_id] = OpFate(fate=fate, into=data.draw(st.sampled_from(ids)) if fate is Fate.FUSED else "")
    found = running_graph(table, fates)
    Arrangement(found.table).scene()
    assert len(found.table) == len(found.members)
    assert {op_id for group in found.members.values() for op_id in group} == set(found.home)
    before, after = networkx.DiGraph(sorted(edges_of(table))), networkx.DiGraph(sorted(edges_of(found.table)))
    for source in before:
        for to in networkx.descendants(before, source):
            ends = found.home.get(source), found.home.get(to)
            if None not in ends and ends[0] != ends[1]:
                assert networkx.has_path(after, *ends)


def test_breaks_inputs_and_outputs_always_stay():
    table = layered_table(2)
    fates = {op_id: OpFate(fate=Fate.GONE) for op_id in table.op_id} | {"linear_0": RUNS}
    kept = running_graph(table, fates).table
    assert [kind for kind in kept.kind if kind is not OpKind.OP] == [
        kind for kind in table.kind if kind is not OpKind.OP
    ]
    assert kept.op_count == 1
    assert kept.op == ("input", "input", "aten.linear.default", "output")
