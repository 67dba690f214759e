"""B over A: the ratio of every figure with its interval; what is within the noise is grey and says so."""

import pyqtgraph as pg

from ace_studio.gui.charts.points import points_of, run_names
from tests.gui.comparing import two_plans


def test_every_figure_of_both_is_a_point_with_its_words(desk):
    found = two_plans(desk)
    view = desk.panel("charts").show_chart("differences")
    desk.settle()
    spots = [item for item in view.chart.plot.items if isinstance(item, pg.ScatterPlotItem)]
    figures = [row for row in found.rows for name in ("latency", "speedup", "size") if getattr(row, name).change]
    assert len(spots) == len(figures)
    assert "within noise" in view.chart.widget.accessibleDescription()


def test_without_a_comparison_the_chart_says_what_to_do(desk):
    desk.ran()
    view = desk.panel("charts").show_chart("differences")
    assert view.missing(desk.document).startswith("Pin a run as A")


def test_other_charts_show_the_points_of_both(desk):
    found = two_plans(desk)
    names = run_names(desk.document)
    assert {name[:3] for name in names[: found.run_count]} == {"A: "}
    assert {name[:3] for name in names[found.run_count :]} == {"B: "}
    assert [point.name[:3] for point in points_of(desk.document)[:2]] == ["A: ", "B: "]
