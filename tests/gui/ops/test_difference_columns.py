"""The columns of the op table while A and B are compared: what each has, and the difference."""

from __future__ import annotations

from msgspec.structs import replace

from ace_studio.gui.ops.difference_columns import difference_columns
from ace_studio.gui.style.colours import DARK
from ace_studio.records.results import OpReport
from ace_studio.session.comparison.sides import Pin, PinnedSide, compared_ops, comparison_of
from tests.gui.comparing import two_plans
from tests.gui.graph_tables import table_of
from tests.session.fake_engine_link import result, target_run

GRAPH = table_of([("x", "input", ""), ("conv2d", "aten.conv2d.default", "a"), ("relu", "aten.relu.default", "a")],
                 edges=[(0, 1), (1, 2)])  # fmt: skip


def report(op_id, actual, latency_ms):
    return OpReport(id=op_id, op="", module="", shape="", device="cpu", planned=actual, actual=actual,
                    latency_ms=latency_ms)  # fmt: skip


def test_every_op_has_a_b_and_their_difference_and_small_ones_are_grey():
    one, other = (
        replace(target_run("a"), ops=(report("conv2d", precision, 4.0), report("relu", "fp32", relu)))
        for precision, relu in (("fp32", 1.0), ("int8-static", 3.0))
    )
    sides = [PinnedSide(graph=GRAPH, result=result(run)) for run in (one, other)]
    found = comparison_of((Pin(name="a"), Pin(name="b")), (sides[0], sides[1]))
    columns = difference_columns(found, compared_ops(found, *found.partners(None)), DARK)
    by_title = {each.title: each for each in columns}
    assert list(by_title["difference"].values) == ["", "differs: precision", ""]
    assert list(by_title["A: precision"].values)[1:] == ["fp32", "fp32"]
    assert list(by_title["B: precision"].values)[1:] == ["int8-static", "fp32"]
    change = next(each for each in columns if each.title == "B - A")
    assert list(change.values) == [None, 0.0, 2.0]
    assert (change.colour(1), change.colour(2)) == (DARK.text_dim, "")
    assert change.text(2.0) == "+2.00"


def test_only_differences_hides_ops_that_are_the_same(desk):
    found = two_plans(desk)
    panel = desk.panel("ops")
    assert panel.model.rowCount() == len(found.merged.table)
    different = [text for text in panel.model.columns[1].values if text]
    panel.only_different.click()
    desk.bot.waitUntil(lambda: panel.model.rowCount() == len(different))
    desk.session.comparing.hide()
    desk.settle()
    desk.bot.waitUntil(lambda: panel.model.rowCount() == len(desk.document.graph))
    assert not panel.only_different.isVisible()
