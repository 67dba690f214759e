"""Where the time goes."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.charts.op_time import ALL_OTHERS, GROUPINGS, parts_of, timed_runs
from tests.gui.charting import open_chart, place_of
from tests.gui.graph_tables import large_table
from tests.gui.run_results import TABLE, result_of


def test_the_parts_of_a_bar_add_up_to_the_time_of_its_ops():
    result = result_of(TABLE)
    document = type("D", (), {"baseline": result.baseline, "runs": result.runs, "comparison": None})
    runs = timed_runs(document)
    assert [one.run for one in runs] == [None, 0, 1]
    for words, group_of in GROUPINGS.values():
        parts = parts_of(runs, group_of)
        for at, one in enumerate(runs):
            total = sum(op.latency_ms or 0.0 for op in one.ops)
            assert sum(part.width_ms for part in parts if part.row == at) == pytest.approx(total), words


def test_more_parts_than_colours_are_one_part_at_the_end():
    table = large_table(300)
    document = type("D", (), {"baseline": result_of(table).baseline, "runs": (), "comparison": None})
    parts = parts_of(timed_runs(document), GROUPINGS["each"][1])
    assert len(parts) == 10
    assert parts[-1].group == ALL_OTHERS


def test_a_click_on_a_part_selects_its_ops_and_its_run(desk, charts):
    view = open_chart(desk, charts, "time")
    part = next(one for one in view.parts if one.run == 0 and one.group == "linear")
    place = place_of(view.chart, part.start_ms + part.width_ms / 2, len(view._runs) - 1 - part.row)
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()
    assert desk.document.selection.op_ids == ("stem_linear", "linear_0", "linear_1", "linear_2")
    assert desk.document.selection.run == 0
