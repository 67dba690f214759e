"""The details of an op in A beside those in B: what both say is one line, what differs is a line of each."""

from __future__ import annotations

from tests.gui.comparing import two_plans


def test_what_differs_of_an_op_is_a_line_of_a_and_a_line_of_b(desk):
    found = two_plans(desk)
    table = found.merged.table
    desk.session.view.select([next(op_id for op_id, op in zip(table.op_id, table.op, strict=True) if "conv2d" in op)])
    panel = desk.panel("details")
    lines = {group.title: [(line.name, line.value) for line in group.lines] for group in panel.groups}
    at = lines["Precision"].index(("planned", f"A: {found.sides[0].recipe.plan.default}"))
    assert lines["Precision"][at + 1] == ("", "B: fp16")
    assert lines["Op"][1] == ("operator", "aten.conv2d.default")
