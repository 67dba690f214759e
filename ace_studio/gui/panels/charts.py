"""The charts panel: a list of charts, and the one that is chosen. Each is loaded when it is first seen."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QDialog, QFileDialog, QGraphicsView, QListWidget, QListWidgetItem, QStackedWidget

from ace_studio.gui.charts.chart import ChartView
from ace_studio.gui.style import Colours, Theme, tr, translate_fields
from ace_studio.gui.widgets.layouts import CLOSE, column, row
from ace_studio.gui.widgets.panel import Panel
from ace_studio.gui.widgets.small import EmptyState, button
from ace_studio.session.document import Document, Part
from ace_studio.session.session import Session

_ID = int(Qt.ItemDataRole.UserRole)


class ChartsPanel(Panel):
    """One chart at a time."""

    title = "Charts"
    shows = frozenset({Part.RUNS, Part.SELECTION, Part.RECIPE, Part.GRAPH, Part.ACTIVITY})

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__(session, theme)
        self.views: dict[str, ChartView] = {}
        self._answered = ""
        """The op whose values were asked for last."""
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Charts"))
        for chart in CHARTS:
            item = QListWidgetItem(chart.text)
            item.setData(_ID, chart.id)
            item.setToolTip(chart.tip)
            item.setSizeHint(QSize(0, self.fontMetrics().height() + 10))
            self.list.addItem(item)
        widest = max(self.fontMetrics().horizontalAdvance(chart.text) for chart in CHARTS)
        self.list.setFixedWidth(max(widest + 34, 190))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._empty = EmptyState("chart", theme)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        self.enlarge_button = button(
            tr("Enlarge"), self._enlarge, tip=tr("The chart alone on the screen; Esc brings it back")
        )
        self.save_button = button(tr("Save…"), self._save, tip=tr("As a picture (PNG, SVG), or its figures (CSV)"))
        side = column(self.list, row(self.enlarge_button, self.save_button, margin=CLOSE, gap=CLOSE), gap=0)
        self._place = row(side, self._pages, gap=0, stretch=1)
        self.setLayout(column(self._place))
        self.setFocusProxy(self.list)
        kept = session.settings.recall("chart")
        self.list.setCurrentRow(next((at for at, chart in enumerate(CHARTS) if chart.id == kept), 0))
        self.list.currentItemChanged.connect(lambda *_: self._choose())

    def make_parts(self) -> Iterator[None]:
        """Make the chart that is chosen."""
        return self._make(self.chart_id)

    @property
    def chart_id(self) -> str:
        """Id of the chosen chart."""
        return str(self.list.currentItem().data(_ID))

    def show_chart(self, chart_id: str) -> ChartView:
        """Choose a chart of `CHARTS`."""
        self.list.setCurrentRow(next(at for at, chart in enumerate(CHARTS) if chart.id == chart_id))
        return self.views[chart_id]

    def show_part(self, part_id: str) -> None:
        """Choose a chart by its id."""
        self.show_chart(part_id)

    def update_from(self, document: Document) -> None:
        """Draw the chosen chart, if its data changed. Values of another op bring their chart to the front."""
        asked = document.values.op_id if document.values is not None else ""
        if asked != self._answered:
            self._answered = asked
            if asked:
                self.show_chart("values")
        view = self._view()
        if not self.has_changed(
            view, document.runs, document.baseline, document.selection, document.result, document.recipe,
            document.graph, document.activity.verb, document.sensitivity, document.pruning, document.values,
            document.comparison, document.read_only,
            document.activity.fraction if self.chart_id == "sensitivity" else None,
        ):  # fmt: skip
            return
        why = view.missing(document)
        for each in (self.enlarge_button, self.save_button):
            each.setEnabled(not why)
        if why:
            self._empty.say(tr("Nothing to draw yet"), why)
            self._pages.setCurrentWidget(self._empty)
            return
        if self._pages.currentWidget() is not view:
            _paint_in_turns(view)
        self._pages.setCurrentWidget(view)
        view.update_from(document)

    def restyle(self, colours: Colours) -> None:
        """Another theme."""
        for view in self.views.values():
            view.restyle(colours)
        super().restyle(colours)

    def _enlarge(self) -> None:
        """Show the charts in a window of their own as large as the screen, until it is closed."""
        large = QDialog(self)
        large.setWindowTitle(str(self.list.currentItem().text()))
        large.setProperty("help", self.property("help"))
        large.setLayout(column(self._pages))
        large.finished.connect(self._shrink)
        large.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        large.resize(self.screen().availableSize())
        self.enlarge_button.setEnabled(False)
        large.showMaximized()

    def _shrink(self) -> None:
        self._place.addWidget(self._pages, 1)
        self.enlarge_button.setEnabled(True)

    def _save(self) -> None:
        from ace_studio.gui.charts.saving import save_chart  # noqa: PLC0415 - loaded when it is needed

        name = str(Path(self.session.document.saving_folder) / f"{self.chart_id}.png")
        path, _ = QFileDialog.getSaveFileName(
            self, tr("Save the chart"), name, tr("PNG, SVG or CSV (*.png *.svg *.csv)")
        )
        if path:
            with self.session.reporting():
                save_chart(self._view(), Path(path))

    def _view(self) -> ChartView:
        if self.chart_id not in self.views:
            for _ in self._make(self.chart_id):
                pass
        return self.views[self.chart_id]

    def _make(self, chart_id: str) -> Iterator[None]:
        """Make a chart, a part until each ``yield``."""
        view = next(one for one in CHARTS if one.id == chart_id).build(self.session, self.colours)
        yield
        yield from view.make_parts()
        self.views[chart_id] = view
        self._pages.addWidget(view)

    def _choose(self) -> None:
        self.session.settings.remember("chart", self.chart_id)
        self.update_from(self.session.document)


def _paint_in_turns(view: ChartView) -> None:
    """Paint each plot of a view in another turn of the event loop: several at once would stop the window."""
    plots = view.findChildren(QGraphicsView)
    for plot in plots:
        plot.setUpdatesEnabled(False)

    def paint_next() -> None:
        plot = plots.pop(0)
        plot.setUpdatesEnabled(True)
        plot.viewport().repaint()
        if plots:
            QTimer.singleShot(0, view, paint_next)

    if plots:
        QTimer.singleShot(0, view, paint_next)


@dataclass(frozen=True, kw_only=True)
class ChartRow:
    """One chart, loaded when it is first seen."""

    id: str
    text: str
    module: str
    view: str
    tip: str

    def __post_init__(self) -> None:
        translate_fields(self, "text", "tip")

    def build(self, session: Session, colours: Colours) -> ChartView:
        """Import and make it."""
        make: Callable[[Session, Colours], ChartView] = getattr(
            import_module(f"ace_studio.gui.charts.{self.module}"), self.view
        )
        return make(session, colours)


CHARTS: tuple[ChartRow, ...] = (
    ChartRow(id="overview", text="Overview", module="overview", view="Overview", tip="Latency, accuracy and size"),
    ChartRow(id="trade-off", text="Trade-off", module="trade_off", view="TradeOff",
             tip="Every run as a point, the front, and the goal as lines that can be dragged"),
    ChartRow(id="time", text="Time by op", module="op_time", view="OpTime",
             tip="Where the time goes, in the baseline and in each run"),
    ChartRow(id="roofline", text="Roofline", module="roofline", view="Roofline",
             tip="Every op against what this machine can do at most"),
    ChartRow(id="error", text="Error along the graph", module="error_line", view="ErrorLine",
             tip="How the error of the selected run grows from op to op"),
    ChartRow(id="sensitivity", text="Sensitivity", module="sensitivity", view="SensitivityChart",
             tip="Which ops disturb the outputs most when they are compressed"),
    ChartRow(id="values", text="Values at an op", module="values", view="ValuesChart",
             tip="What one op gives for an example, and its weights: float, compressed, difference"),
    ChartRow(id="transitions", text="Precision changes", module="transitions", view="Transitions",
             tip="Which precision feeds which, planned or actual"),
    ChartRow(id="weights", text="Work on weights", module="weights", view="WeightWork",
             tip="Pruning with a preview, better rounding, fine-tuning: what each did"),
    ChartRow(id="worst", text="Worst samples", module="worst", view="WorstSamples",
             tip="The examples that the selected run does worst on"),
    ChartRow(id="differences", text="A against B", module="differences", view="Differences",
             tip="Latency, speed-up and size of B over A, with 95 % intervals"),
)  # fmt: skip
