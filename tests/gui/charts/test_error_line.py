"""The error along the graph: the fidelity of every op's value, in order of execution."""

import pytest
from PySide6.QtCore import Qt

from tests.gui.charting import open_chart, place_of
from tests.gui.run_results import TABLE


def test_the_error_line_is_that_of_the_selected_run(desk, charts):
    view = open_chart(desk, charts, "error")
    assert view.shown[0][1] == pytest.approx(60.0 - TABLE.op_id.index("stem_linear"))
    assert view.chart.title.text().startswith("openvino, the other runs in grey: Fidelity")
    desk.session.view.select_run(0)
    desk.settle()
    assert view.shown[0][1] == pytest.approx(40.0 - TABLE.op_id.index("stem_linear"))
    row, value, op = view.shown[2]
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view.chart, row, value))
    desk.settle()
    assert desk.document.selection.op_ids == (op.id,)


def test_the_mouse_reads_the_op_and_the_error_of_every_run_there(desk, charts):
    view = open_chart(desk, charts, "error")
    row, value, report = view.shown[1]
    desk.bot.mouseMove(view.chart.widget, place_of(view.chart, row, value))
    desk.bot.wait(20)
    lines = view.chart._reading.text().splitlines()
    assert lines[0] == report.id and len(lines) == 3 and all(line.endswith("dB") for line in lines[1:])
    assert view.chart._reading.isVisible()
