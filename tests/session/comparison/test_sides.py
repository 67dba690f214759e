"""The two sides of a comparison: runs, ops and choices together."""

from msgspec.structs import replace

from ace_studio.records.recipes.plan import Plan, Precision
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import OpReport
from ace_studio.session.comparison.graphs import OpChange
from ace_studio.session.comparison.sides import Pin, PinnedSide, compared_ops, comparison_of
from tests.gui.graph_tables import table_of
from tests.session.fake_engine_link import result, target_run

GRAPH = table_of([("x", "input", ""), ("conv2d", "aten.conv2d.default", "a"), ("relu", "aten.relu.default", "a")],
                 edges=[(0, 1), (1, 2)])  # fmt: skip
MODEL = ModelChoice(source="m.py")
PINS = Pin(name="one"), Pin(name="other")
FP32, INT8 = (Recipe(model=MODEL, plan=Plan(default=each)) for each in (Precision.FP32, Precision.INT8_STATIC))


def report(op_id, actual):
    return OpReport(id=op_id, op="", module="", shape="", device="cpu", planned=actual, actual=actual)


def test_plans_without_runs_differ_in_what_they_plan():
    found = comparison_of(PINS, (PinnedSide(recipe=FP32, graph=GRAPH), PinnedSide(recipe=INT8, graph=GRAPH)))
    ops = compared_ops(found, *found.partners(None))
    assert ops.changes == (OpChange.SAME, OpChange.PRECISION, OpChange.PRECISION)
    assert [change.name for change in found.changes] == ["plan: default"]


def test_runs_differ_in_what_their_runtimes_did():
    one = replace(target_run("a"), ops=(report("conv2d", "int8-static"), report("relu", "fused")))
    other = replace(target_run("b"), ops=(report("conv2d", "fp32"), report("relu", "fused")))
    sides = (
        PinnedSide(recipe=INT8, graph=GRAPH, result=result(one)),
        PinnedSide(recipe=INT8, graph=GRAPH, result=result(other)),
    )
    found = comparison_of(PINS, sides)
    ops = compared_ops(found, *found.partners(None))
    assert ops.changes == (OpChange.SAME, OpChange.PRECISION, OpChange.SAME)
    assert ops.precisions[1]["conv2d"] == "fp32"


def test_the_runs_of_both_stand_one_after_the_other_and_know_their_partners():
    first, second = result(target_run("a"), target_run("b")), result(target_run("b"))
    found = comparison_of(PINS, (PinnedSide(recipe=INT8, result=first), PinnedSide(recipe=INT8, result=second)))
    assert [run.target for run in found.runs] == ["a", "b", "b"]
    assert [found.side_of(run) for run in range(3)] == [0, 0, 1]
    assert [run.target for run in found.partners(2)] == ["b", "b"]
    assert found.partners(0) == (found.runs[0], None)


def test_one_result_row_can_be_a_side():
    whole = PinnedSide(recipe=INT8, result=result(target_run("a"), target_run("b")))
    assert [run.target for run in whole.of_row(1).result.runs] == ["b"]
    assert whole.of_row(7) is whole.of_row(None) is whole


def test_a_graph_that_only_one_side_has_is_shown_as_it_is():
    found = comparison_of(PINS, (PinnedSide(recipe=INT8), PinnedSide(recipe=INT8, graph=GRAPH)))
    assert found.merged.table.op_id == GRAPH.op_id
