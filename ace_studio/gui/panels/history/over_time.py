"""One model over time: a figure of its chosen runs, from the first to the newest."""

from collections.abc import Callable, Sequence

import pyqtgraph as pg
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from ace_studio.gui.charts.chart import Chart, add_spots, under_mouse
from ace_studio.gui.panels.history.panel import when_text
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import column, row
from ace_studio.gui.widgets.small import GAP, ElidedLabel, button
from ace_studio.gui.words.formatting import run_text
from ace_studio.session.kept.history import RunSummary

_FIGURES: dict[str, Callable[[RunSummary], float | None]] = {
    tr("latency, ms"): lambda run: run.latency_ms,
    tr("speed-up"): lambda run: run.speedup,
    tr("vs fp32"): lambda run: run.float_speedup,
    tr("metric"): lambda run: run.metric,
    f"{tr('drop')}, %": lambda run: None if run.metric_drop is None else 100 * run.metric_drop,
    tr("size, MB"): lambda run: None if run.size_bytes is None else run.size_bytes / 1e6,
}
"""What can be drawn, and how it is read."""


class OverTime(QWidget):
    """A line with a point per run. A click chooses the run."""

    left = Signal()
    chosen = Signal(int)
    """Id of the run."""

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours
        self.runs: tuple[RunSummary, ...] = ()
        self.title = ""
        """Of the model."""
        self.figure = ComboBox(tr("Figure"), [(name, name) for name in _FIGURES], chosen=self._draw)
        self.headline = ElidedLabel()
        head = row(button(tr("Back to the list"), self.left.emit), self.figure, self.headline, margin=GAP, stretch=2)
        self.chart = Chart(tr("Over time"))
        self.chart.widget.scene().sigMouseClicked.connect(self._clicked)
        self.setLayout(column(head, self.chart, gap=0, stretch=1))

    def show_runs(self, runs: Sequence[RunSummary], colours: Colours) -> None:
        """Draw the runs of the model that came to a result; they come newest first."""
        self._colours = colours
        self.runs = tuple(run for run in reversed(runs) if run.title == self.title and not run.is_unfinished)
        self.headline.setText(tr("{title}: the chosen target of each run, the newest at the right", title=self.title))
        self._draw()

    def _draw(self) -> None:
        name = self.figure.currentText()
        read = _FIGURES[name]
        points = [(at, value, run) for at, run in enumerate(self.runs) if (value := read(run)) is not None]
        plot = self.chart.start(name, self._colours, y_grid=True)
        places = [(float(at), float(value)) for at, value, _ in points]
        if not places:
            self.chart.start(
                tr("No run of this model has a {partition}", partition=name.partition(",")[0]), self._colours
            )
            return
        pen = pg.mkPen(self._colours.accent, width=2)
        plot.addItem(pg.PlotDataItem([x for x, _ in places], [y for _, y in places], pen=pen))
        tips = {
            str(run.id): "\n".join(filter(None, (run.name, when_text(run.date), run_text(run)))) for _, _, run in points
        }
        add_spots(
            plot, places, op_ids=list(tips), fills=[self._colours.accent] * len(places), sizes=[9.0] * len(places),
            selected=frozenset(), colours=self._colours, tip=tips.__getitem__,
        )  # fmt: skip
        plot.getAxis("bottom").setTicks([[(at, when_text(run.date)[5:16]) for at, _, run in points[:: _step(points)]]])
        plot.setXRange(-0.5, len(self.runs) - 0.5, padding=0)
        high = max(y for _, y in places)
        plot.setYRange(min(0.0, *(y for _, y in places)), 1.1 * high or 1.0, padding=0)
        self.chart.describe("; ".join(tips.values()).replace("\n", ": "))

    def _clicked(self, event: object) -> None:
        found = under_mouse(self.chart.plot, event)
        if found is not None:
            self.chosen.emit(int(str(found)))


def _step(points: Sequence[object]) -> int:
    """So that at most eight dates are written."""
    return max(1, -(-len(points) // 8))
