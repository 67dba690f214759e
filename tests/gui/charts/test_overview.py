"""Latency with its spread, accuracy against latency, and size: three plots side by side."""

from itertools import pairwise

import pyqtgraph as pg
import pytest
from msgspec.structs import replace
from PySide6.QtGui import QPainter, QPixmap

from tests.gui.charting import open_chart
from tests.gui.run_results import REPORT, TABLE, result_of, run_of, show_result


def texts(chart):
    return [item.toPlainText() for item in chart.plot.items if isinstance(item, pg.TextItem)]


@pytest.mark.parametrize(
    ("medians", "unit", "shown"),
    [
        ((0.08, 0.12, 12.0), "ms", ["0.08000", "0.1200", "12.00"]),
        ((0.02, 0.05, 0.3), "µs", ["20.00", "50.00", "300.0"]),
    ],
)
def test_all_latencies_are_in_one_unit_that_the_titles_name(desk, medians, unit, shown):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    runs = tuple(run_of(TABLE, f"target{at}", p50=p50) for at, p50 in enumerate(medians))
    show_result(desk, TABLE, result_of(TABLE, runs, baseline=None, worst=(), chosen=0))
    overview = open_chart(desk, charts, "overview")
    assert texts(overview.latency) == shown
    assert f" in {unit}" in overview.latency.title.text()
    assert overview.trade_off.title.text().endswith(f" in {unit}")
    bars = [item.opts["width"][0] for item in overview.latency.plot.items if isinstance(item, pg.BarGraphItem)]
    spots = [item for item in overview.trade_off.plot.items if isinstance(item, pg.ScatterPlotItem)]
    assert bars == pytest.approx([float(number) for number in shown])
    assert [spot.getData()[0][0] for spot in spots] == pytest.approx(bars)


def test_all_sizes_are_in_one_unit_that_the_title_names(desk):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    runs = tuple(run_of(TABLE, f"target{at}", size=size) for at, size in enumerate((900_000, 12_000_000, 40_000_000)))
    show_result(desk, TABLE, result_of(TABLE, runs, baseline=None, worst=(), chosen=0))
    sizes = open_chart(desk, charts, "overview").sizes
    assert (sizes.title.text(), texts(sizes)) == ("Size in MB", ["0.900", "12.0", "40.0"])


@pytest.mark.parametrize(("width", "is_whole"), [(380, False), (2400, True)])
def test_names_of_points_never_lie_on_each_other_and_are_left_out_where_there_is_no_room(desk, width, is_whole):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    pairs = zip(("int8-static", "int8-dynamic") * 3, (("onnxruntime", "openvino", "inductor") * 2), strict=True)
    runs = tuple(
        replace(run_of(TABLE, target, p50=2.0 + 3 * at, drop=0.001 * at), precision=precision)
        for at, (precision, target) in enumerate(pairs)
    )
    show_result(desk, TABLE, result_of(TABLE, runs, baseline=None, worst=(), chosen=0))
    overview = open_chart(desk, charts, "overview")
    overview.setParent(None)
    overview.resize(width, 300)
    overview.show()
    desk.settle()
    chart = overview.trade_off
    shown = [item for item in chart.plot.items if isinstance(item, pg.TextItem) and item.isVisible()]
    assert (len(shown) == len(runs)) is is_whole
    places = [item.mapRectToScene(item.boundingRect()).adjusted(0, 4, 0, -4) for item in shown]
    assert all(chart.plot.vb.sceneBoundingRect().adjusted(-1, -1, 1, 1).contains(place) for place in places)
    assert not [at for at, one in enumerate(places) if any(map(one.intersects, places[at + 1 :]))]
    overview.hide()
    overview.setParent(charts)


@pytest.mark.parametrize("width", [380, 800, 1000, 1600])
def test_numbers_of_the_axis_below_never_touch_and_stand_at_equal_distances(desk, width):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    runs = tuple(run_of(TABLE, f"target{at}", p50=p50) for at, p50 in enumerate((0.19, 0.33, 0.99)))
    show_result(desk, TABLE, result_of(TABLE, runs, baseline=None, worst=(), chosen=0))
    overview = open_chart(desk, charts, "overview")
    overview.setParent(None)
    overview.resize(width, 300)
    overview.show()
    desk.settle()
    axis = overview.trade_off.plot.getAxis("bottom")
    picture = QPixmap(10, 10)
    painter = QPainter(picture)
    _, _, written = axis.generateDrawSpecs(painter)
    painter.end()
    places = sorted((rect for rect, _, text in written if text), key=lambda rect: rect.left())
    assert len(places) >= 2
    assert all(one.right() < other.left() for one, other in pairwise(places))
    distances = [other.center().x() - one.center().x() for one, other in pairwise(places)]
    assert max(distances) - min(distances) < 3
    overview.hide()
    overview.setParent(charts)
