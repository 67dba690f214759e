"""Opening a chart of the charts panel."""

from PySide6.QtCore import QPointF


def open_chart(desk, charts, chart_id):
    view = charts.show_chart(chart_id)
    desk.settle()
    desk.bot.wait(30)
    return view


def place_of(chart, x, y):
    """A place of the plot as a point of the widget."""
    scene = chart.plot.vb.mapViewToScene(QPointF(x, y))
    return chart.widget.mapFromScene(scene)
