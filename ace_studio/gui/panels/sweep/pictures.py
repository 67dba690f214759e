"""The front over all jobs as a plot, and the heat map of batch and shape as a table."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QAbstractItemView, QTableWidget, QTableWidgetItem

from ace_studio.gui.charts.chart import Chart, add_spots
from ace_studio.gui.graph_view.colours import blend, text_on
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.words.formatting import ms_text
from ace_studio.records.sweeps import SweepRow
from ace_studio.sweeps.heat import HeatMap


def draw_front(chart: Chart, rows: Sequence[SweepRow], colours: Colours) -> None:
    """A point per job with a latency and an accuracy: its metric, or where jobs have none their fidelity."""
    measured = [row for row in rows if row.latency_ms is not None]
    by_metric = bool(measured) and all(row.metric is not None for row in measured)
    shown = [(row, row.metric if by_metric else row.fidelity) for row in measured]
    places = [(row.latency_ms or 0.0, float(value)) for row, value in shown if value is not None]
    named = [row for row, value in shown if value is not None]
    if not places:
        chart.start(tr("No job has a latency and an accuracy yet"), colours)
        return
    name = tr("metric") if by_metric else tr("fidelity, dB")
    plot = chart.start(tr("{name} against latency; on the front in colour", name=name), colours, y_grid=True)
    plot.setLabel("bottom", tr("latency, ms"), color=colours.text_dim)
    plot.setLabel("left", name, color=colours.text_dim)
    tips = {row.job: job_words(row) for row in named}
    add_spots(
        plot, places, op_ids=list(tips), fills=[colours.accent if row.on_front else colours.faded for row in named],
        sizes=[12.0 if row.on_front else 8.0 for row in named], selected=frozenset(), colours=colours,
        tip=tips.__getitem__,
    )  # fmt: skip
    for row, (x, y) in zip(named, places, strict=True):
        if row.on_front:
            chart.write(f" {row.job}", x, y, colour=colours.text)
    for values, stretch in (([x for x, _ in places], plot.setXRange), ([y for _, y in places], plot.setYRange)):
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or abs(high) or 1.0
        stretch(low - room, high + room, padding=0)
    chart.describe("; ".join(tips.values()))


def job_words(row: SweepRow) -> str:
    """``job 3: plan int8-static, threads 1: openvino int8-static, 1.2 ms``."""
    about = ", ".join(f"{axis} {word}" for axis, word in row.axes.items())
    job, target = tr("job {number}", number=row.job), f"{row.target} {row.precision}"
    return f"{job}: {about or row.recipe}: {target}, {ms_text(row.latency_ms)}"


class HeatTable(QTableWidget):
    """One map: a row per batch, a column per shape, the colour is the time of one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Latency by batch and shape"))
        self.setToolTip(
            tr("The fastest job of each cell that meets its goal; the stronger the colour, the longer takes one sample")
        )
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)

    def show_map(self, shown: HeatMap, colours: Colours) -> None:
        """Show a map."""
        self.clear()
        self.setColumnCount(len(shown.shapes))
        self.setRowCount(len(shown.rows))
        self.setHorizontalHeaderLabels([shape or tr("one size") for shape in shown.shapes])
        self.setVerticalHeaderLabels([tr("batch {batch}", batch=batch) for batch, _ in shown.rows])
        for at, (_, cells) in enumerate(shown.rows):
            for place, cell in enumerate(cells):
                item = QTableWidgetItem("" if cell is None else ms_text(cell.row.latency_ms))
                item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
                if cell is not None:
                    fill = blend(colours.accent, colours.surface, share=cell.share)
                    item.setBackground(QBrush(QColor(fill)))
                    item.setForeground(QBrush(QColor(text_on(fill))))
                    item.setToolTip(job_words(cell.row))
                self.setItem(at, place, item)
