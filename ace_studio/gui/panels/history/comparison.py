"""Two past runs side by side: their figures as differences, a chart of them, and the choices that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyqtgraph as pg
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSplitter, QTableView, QTabWidget, QWidget

from ace_studio.gui.charts.chart import Chart
from ace_studio.gui.panels.history.columns import when_text
from ace_studio.gui.style.colours import Colours
from ace_studio.gui.widgets.small import GAP, ElidedLabel, button, column, row
from ace_studio.gui.widgets.table_look import plain_table, set_widths
from ace_studio.gui.widgets.table_model import Column, ColumnsModel
from ace_studio.gui.words.formatting import NOTHING, TimeUnit, bytes_text, decibel_text, metric_text
from ace_studio.session.kept.history import PastRun
from ace_studio.session.run_comparison import ComparedRow, Difference, RecipeChange, compared_rows, recipe_changes

_BAR = 0.34
_BETTER = {"latency": -1, "size": -1, "speed-up": 1}
"""Whether a ratio above 1 is better (1) or worse (-1); of other figures the window does not know."""


class ComparisonView(QWidget):
    """Run A, the reference, and run B. A difference within the noise is grey."""

    left = Signal()
    """Back to the list."""
    swapped = Signal()

    def __init__(self, colours: Colours) -> None:
        """Build the tables and the chart."""
        super().__init__()
        self._colours = colours
        self._pair: tuple[PastRun, PastRun] | None = None
        self.rows: tuple[ComparedRow, ...] = ()
        self.headline = ElidedLabel()
        back = button("Back to the list", self.left.emit)
        head = row(back, button("Swap A and B", self.swapped.emit), self.headline)
        head.setContentsMargins(GAP, GAP, GAP, GAP)
        head.setStretch(2, 1)
        self.figures, self.choices = ColumnsModel(self), ColumnsModel(self)
        self.figures_table = plain_table(self.figures, "Differences of the results")
        self.choices_table = plain_table(self.choices, "Choices that differ")
        self.chart = Chart("Latency")
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.chart, "Latency")
        self.tabs.addTab(self.choices_table, "Choices")
        split = QSplitter()
        split.setHandleWidth(1)
        split.addWidget(self.figures_table)
        split.addWidget(self.tabs)
        split.setSizes([620, 420])
        layout = column(head, gap=0)
        layout.addWidget(split, 1)
        self.setLayout(layout)

    def show_pair(self, pair: tuple[PastRun, PastRun], colours: Colours) -> None:
        """Compare these. Raises: AceError if a recipe cannot be read."""
        if pair is self._pair and colours is self._colours:
            return
        self._pair, self._colours = pair, colours
        first, second = pair
        names = [f"{past.summary.title}, {when_text(past.summary.date)}" for past in pair]
        self.headline.setText(f"A: {names[0]}    B: {names[1]}    grey: no difference seen")
        self.rows = compared_rows(first.result, second.result)
        changes = recipe_changes(first, second)
        self.tabs.setTabText(1, f"Choices ({len(changes)})" if changes else "Choices: the same")
        for model, table, columns in (
            (self.figures, self.figures_table, figure_columns(self.rows, colours)),
            (self.choices, self.choices_table, choice_columns(changes)),
        ):
            model.set_columns(columns)
            _fit(table, model)
        self._draw()

    def _draw(self) -> None:
        rows = [each for each in self.rows if each.latency.first or each.latency.second]
        unit = TimeUnit.of(time for each in rows for time in (each.latency.first, each.latency.second))
        plot = self.chart.start(f"Latency, {unit.name}", self._colours)
        series = self._colours.series
        tops = [0.0]
        for at, name in enumerate(("A", "B")):
            times = [(each.latency.second if at else each.latency.first) or 0.0 for each in rows]
            places = [len(rows) - 1 - number + (_BAR / 2 if at == 0 else -_BAR / 2) for number in range(len(rows))]
            widths = [time * unit.per_ms for time in times]
            plot.addItem(
                pg.BarGraphItem(x0=0, y=places, height=_BAR, width=widths, brush=series[at], pen=None, name=name)
            )
            for time, width, y in zip(times, widths, places, strict=True):
                if time:
                    text = pg.TextItem(f"{name} {unit.text(time)}", color=self._colours.text, anchor=(0, 0.5))
                    text.setPos(width, y)
                    plot.addItem(text)
            tops += widths
        self.chart.name_rows([each.name for each in rows])
        self.chart.keep_room(max(tops), "B 000.00")
        self.chart.describe("; ".join(f"{each.name}: {_ratio(each.latency)}" for each in rows))


def figure_columns(rows: Sequence[ComparedRow], colours: Colours) -> list[Column]:
    """A row per target and precision: A, B and the change of every figure."""
    unit = TimeUnit.of(time for each in rows for time in (each.latency.first, each.latency.second))
    columns = [Column(title="run", values=[each.name for each in rows])]
    for title, read, text, change, tip in (
        (f"latency, {unit.name}", lambda each: each.latency, unit.text, _ratio,
         "Median. B over A, with the bootstrap interval of the ratio, widened by what the original changed"),
        ("speed-up", lambda each: each.speedup, lambda value: NOTHING if value is None else f"{value:.2f}×", _ratio,
         "B over A. Each is over the original in its own run, so that a slower machine matters less"),
        ("metric", lambda each: each.metric, metric_text, lambda found: _delta(found, ".4f"),
         "B minus A. The interval takes both intervals together"),
        ("SQNR", lambda each: each.sqnr, decibel_text, lambda found: _delta(found, ".1f"), "B minus A, in dB"),
        ("size", lambda each: each.size, bytes_text, _ratio, "B over A"),
    ):  # fmt: skip
        found = [read(each) for each in rows]
        columns += [
            Column(title=f"{title}: A", values=[one.first for one in found], text=text, is_number=True),
            Column(title="B", values=[one.second for one in found], text=text, is_number=True),
            Column(title="change", values=[change(one) for one in found], tip=tip, tips=_tips(found),
                   colour=_mood(found, colours, better=_BETTER.get(title.partition(",")[0], 0))),
        ]  # fmt: skip
    return columns


def choice_columns(changes: Sequence[RecipeChange]) -> list[Column]:
    """A row per choice that differs."""
    return [
        Column(title="choice", values=[one.name for one in changes]),
        Column(title="A", values=[one.first for one in changes], tips=lambda at: changes[at].first),
        Column(title="B", values=[one.second for one in changes], tips=lambda at: changes[at].second),
    ]


def _tips(found: Sequence[Difference]) -> Callable[[int], str]:
    def tip(at: int) -> str:
        one = found[at]
        if one.low is None or one.high is None:
            return "No interval is known" if one.change is not None else ""
        seen = "" if one.is_clear else "; no difference was seen"
        return f"95 %: {one.low:.3g} – {one.high:.3g}{seen}"

    return tip


def _mood(found: Sequence[Difference], colours: Colours, *, better: int) -> Callable[[int], str]:
    def colour(at: int) -> str:
        one = found[at]
        if one.change is None or not one.is_clear:
            return colours.text_dim
        if not better:
            return colours.text
        return colours.good if (one.change > 1) == (better > 0) else colours.bad

    return colour


def _ratio(found: Difference) -> str:
    if found.change is None:
        return NOTHING
    words = f"{found.change:.2f}×"
    interval = f"  {found.low:.2f} – {found.high:.2f}" if found.low is not None and found.high is not None else ""
    return f"{words}{interval}" if found.is_clear else f"{words}{interval} ≈"


def _delta(found: Difference, form: str) -> str:
    return NOTHING if found.change is None else f"{found.change:+{form}}{'' if found.is_clear else ' ≈'}"


def _fit(table: QTableView, model: ColumnsModel) -> None:
    set_widths(table, model)
    table.resizeColumnsToContents()
    for at in range(len(model.columns)):
        table.setColumnWidth(at, min(280, table.columnWidth(at)))
