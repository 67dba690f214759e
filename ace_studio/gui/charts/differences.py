"""B over A: the ratio of every figure with its interval; what is within the noise is grey and says so."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from ace_studio.gui.charts.chart import PlotView
from ace_studio.gui.style import Colours, number, tr
from ace_studio.gui.words.formatting import unclear_words
from ace_studio.session.comparison.figures import Difference
from ace_studio.session.comparison.sides import PinnedPair
from ace_studio.session.document import Document
from ace_studio.session.session import Session

_FIGURES = (
    ("latency", tr("latency"), -1),
    ("speedup", tr("speed-up"), 1),
    ("float_speedup", tr("vs fp32"), 1),
    ("size", tr("size"), -1),
)
"""Field of a row, its name, and whether a ratio above 1 is better (1) or worse (-1)."""


class Differences(PlotView):
    """A row per figure of every target; a line marks no change."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.show_plot(tr("B over A"))

    def missing(self, document: Document) -> str:
        """Needs two sides with a figure that both have."""
        found = document.comparison
        if found is None:
            return tr("Pin a run as A and one as B, and show their difference.")
        return "" if _ratios(found) else tr("No target has a figure in both.")

    def update_from(self, document: Document) -> None:
        """Draw the ratios."""
        if document.comparison is None:
            return
        found = _ratios(document.comparison)
        plot = self.chart.start(tr("B over A, with 95 % intervals. Grey: within the noise"), self.colours)
        plot.addItem(pg.InfiniteLine(pos=1.0, pen=pg.mkPen(self.colours.control, style=Qt.PenStyle.DashLine)))
        tops = []
        for at, (name, one, better) in enumerate(found):
            y, change = len(found) - 1 - at, one.change or 0.0
            is_better = (change > 1) == (better > 0)
            colour = self.colours.text_dim if not one.is_clear else self.colours.good if is_better else self.colours.bad
            low, high = one.low or change, one.high or change
            bar = pg.ErrorBarItem(
                x=np.array([change]), y=np.array([y]), left=np.array([change - low]), right=np.array([high - change]),
                beam=0.3, pen=pg.mkPen(colour, width=2),
            )  # fmt: skip
            plot.addItem(bar)
            spot = pg.ScatterPlotItem([change], [y], size=11, brush=pg.mkBrush(colour), pen=pg.mkPen(self.colours.text))
            said = f"{number(change, '.2f')}×, {tr('better') if is_better else tr('worse')}"
            words = said if one.is_clear else f"{number(change, '.2f')}×, {unclear_words(one)}"
            spot.setToolTip(f"{name}: {words}, 95 %: {number(low, '.3g')} – {number(high, '.3g')}")
            plot.addItem(spot)
            ink = self.colours.text if one.is_clear else self.colours.text_dim
            self.chart.write(f"   {words}", high * 1.02, y, colour=ink, anchor=(0, 0.5))
            tops.append((high, words, name))
        self.chart.name_rows([name for name, _, _ in found])
        self.chart.keep_room(max(1.0, *(top for top, _, _ in tops)), tr("00.00×, within noise"))
        self.chart.describe("; ".join(f"{name} {words}" for _, words, name in tops))


def _ratios(found: PinnedPair) -> list[tuple[str, Difference, int]]:
    """Name, difference, and the direction that is better."""
    return [
        (f"{name}: {row.name}", one, better)
        for row in found.rows
        for field, name, better in _FIGURES
        if (one := getattr(row, field)).change is not None
    ]
