"""A and B in a new window on the files of an ended one: the pins are there, and every panel shows what differs."""

import pytest

from tests.gui.comparing import press, two_plans
from tests.gui.conftest import open_desk


@pytest.fixture
def again(desk, qtbot, qapp, tmp_path):
    """A window that was started after one with A and B has ended; nothing of the model was traced or run in it."""
    two_plans(desk)
    press(desk, "Back to the present")
    desk.window.close()
    with open_desk(qtbot, qapp, tmp_path / "user") as made:
        made.open_example()
        yield made


def test_every_panel_shows_what_differs(again, desk):
    assert again.document.graph is None and again.document.result is None
    assert again.document.pins == desk.document.pins
    press(again, "Show the difference")
    shown = again.document.comparison
    assert [side.graph is not None and side.result is not None for side in shown.sides] == [True, True]
    first, second = (str(side.recipe.plan.default) for side in shown.sides)
    assert (first != second, second) == (True, "fp16")

    plan = again.panel("plan")
    rows = [[plan.changes.index(row, at).data() for at in range(3)] for row in range(plan.changes.rowCount())]
    assert ["plan: default", first, second] in rows
    graph = again.window.workbench.panel("graph")
    assert graph.colour_by.currentData() == "difference"
    results = again.panel("results")
    assert results._verdict.text().startswith("B against A: ")
    assert len(results.rows) == len(shown.rows)
    titles = [each.title for each in again.panel("ops").model.columns]
    assert "difference" in titles and {"A", "B"} <= {title[:1] for title in titles}
    table = shown.merged.table
    again.session.view.select([next(op for op, name in zip(table.op_id, table.op, strict=True) if "conv2d" in name)])
    again.settle()
    lines = [line.value for group in again.panel("details").groups for line in group.lines]
    assert {f"A: {first}", f"B: {second}"} <= set(lines)
    assert again.panel("charts").show_chart("differences").missing(again.document) == ""
    code = again.panel("code").python.toPlainText().splitlines()
    assert [line for line in code if line.startswith("+") and "fp16" in line]
    assert not [line for line in code if line.startswith("-") and "fp16" in line]
    assert any(line.startswith(" ") for line in code)

    press(again, "Back to the present")
    assert again.document.comparison is None
    assert "fp16" in again.panel("code").python.toPlainText()
    assert "+" not in {line[:1] for line in again.panel("code").python.toPlainText().splitlines()}
