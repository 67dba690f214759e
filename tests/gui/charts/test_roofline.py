"""The roofline."""

import pyqtgraph as pg
import pytest
from msgspec.structs import replace

from tests.gui.charting import open_chart
from tests.gui.run_results import TABLE, result_of, show_result


def test_the_roofline_places_an_op_by_its_operations_bytes_and_time(desk, charts):
    view = open_chart(desk, charts, "roofline")
    op, intensity, gflops = next(one for one in view.placed if one[0].id == "linear_0")
    row = TABLE.op_id.index("linear_0")
    assert intensity == pytest.approx(1000 * row / 4096)
    assert gflops == pytest.approx(1000 * row / op.latency_ms / 1e6)


def test_no_point_covers_the_name_of_a_ceiling(desk, charts):
    plot = open_chart(desk, charts, "roofline").chart.plot
    (points,) = (item for item in plot.items if isinstance(item, pg.ScatterPlotItem))
    names = [item for item in plot.items if isinstance(item, pg.TextItem)]
    assert names and all(name.zValue() > points.zValue() for name in names)
    assert all(name.fill.color().alpha() == 255 for name in names)


def test_precisions_without_a_ceiling_of_their_own_are_named_at_that_of_fp32(desk, charts):
    plot = open_chart(desk, charts, "roofline").chart.plot
    assert not any("none was measured" in item.toPlainText() for item in plot.items if isinstance(item, pg.TextItem))
    result = result_of(TABLE)
    ceilings = replace(result.ceilings, gflops={"fp32": 50.0})
    show_result(desk, TABLE, replace(result, ceilings=ceilings))
    desk.settle()
    names = [item.toPlainText() for item in plot.items if isinstance(item, pg.TextItem)]
    assert names == ["fp32 50 GFLOP/s; of int8-static none was measured, it may be higher"]
