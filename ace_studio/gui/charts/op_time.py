"""Where the time goes: one bar per run, in parts by operator, module or precision. A click selects a part's ops."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import pyqtgraph as pg

from ace_studio.gui.charts.chart import PlotView
from ace_studio.gui.charts.points import run_names
from ace_studio.gui.graph_layout.sizes import short_op
from ace_studio.gui.graph_view.colours import text_on
from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.fields import ComboBox
from ace_studio.gui.widgets.layouts import CLOSE, GAP, row
from ace_studio.gui.widgets.small import ElidedLabel, label
from ace_studio.gui.words.formatting import ms_text, plural
from ace_studio.records.by_identity import are_same
from ace_studio.records.results import OpReport, OpsProfile
from ace_studio.session.document import Document
from ace_studio.session.session import Session

PARTS_SHOWN = 9
"""The largest parts have a colour of their own; the rest is one part."""
ALL_OTHERS = tr("all others")
_BAR = 0.62

GROUPINGS: dict[str, tuple[str, Callable[[OpReport], str]]] = {
    "op": (tr("operator"), lambda op: short_op(op.op)),
    "module": (tr("module"), lambda op: ".".join(op.module.split(".")[:2]) or tr("model")),
    "precision": (tr("actual precision"), lambda op: op.actual),
    "each": (tr("single op"), lambda op: op.id),
}
"""Id -> words, and the part that an op belongs to."""


@dataclass(frozen=True, kw_only=True)
class TimedRow:
    """The baseline or a run whose ops were timed."""

    name: str
    run: int | None
    ops: tuple[OpReport, ...]
    profile: OpsProfile | None


@dataclass(frozen=True, kw_only=True)
class BarPart:
    """One part of one bar."""

    row: int
    """Of the bar, from the top."""
    group: str
    start_ms: float
    width_ms: float
    op_ids: tuple[str, ...]
    run: int | None


def timed_runs(document: Document) -> list[TimedRow]:
    """The baseline and the runs whose ops were timed, in this order."""
    base, names = document.baseline, run_names(document)
    found = [TimedRow(name=base.name, run=None, ops=base.ops, profile=base.profile)] if base is not None else []
    found += [
        TimedRow(name=names[at], run=at, ops=run.ops, profile=run.profile) for at, run in enumerate(document.runs)
    ]
    return [one for one in found if any(op.latency_ms for op in one.ops)]


def parts_of(runs: Sequence[TimedRow], group_of: Callable[[OpReport], str]) -> list[BarPart]:
    """The parts of all bars, the largest group first; a group has the same place in every bar."""
    timed = [[(group_of(op), op.latency_ms, op.id) for op in one.ops if op.latency_ms] for one in runs]
    total: dict[str, float] = {}
    for group, time, _ in chain.from_iterable(timed):
        total[group] = total.get(group, 0.0) + time
    kept = sorted(total, key=lambda group: -total[group])[:PARTS_SHOWN]
    found = []
    for at, one in enumerate(runs):
        times: dict[str, float] = {}
        ids: dict[str, list[str]] = {}
        for name, time, op_id in timed[at]:
            group = name if name in kept else ALL_OTHERS
            times[group] = times.get(group, 0.0) + time
            ids.setdefault(group, []).append(op_id)
        start = 0.0
        for group in (*kept, ALL_OTHERS):
            if group in times:
                part = BarPart(row=at, group=group, start_ms=start, width_ms=times[group], op_ids=tuple(ids[group]),
                            run=one.run)  # fmt: skip
                found.append(part)
                start += times[group]
    return found


class OpTime(PlotView):
    """Bars in milliseconds, or as shares of each run's own time."""

    def __init__(self, session: Session, colours: Colours) -> None:
        super().__init__(session, colours)
        self.parts: list[BarPart] = []
        self._runs: list[TimedRow] = []
        self._made_of: tuple[object, ...] = ()
        """The grouping and the ops that `parts` were made of."""
        self._scale: list[float] = []
        """Of each bar: units of the plot per millisecond."""
        parts = [(words, each) for each, (words, _) in GROUPINGS.items()]
        self.grouping = ComboBox(tr("Parts by"), parts, chosen=self.draw_again)
        units = ((tr("milliseconds"), "ms"), (tr("share of the run"), "share"))
        self.unit = ComboBox(tr("Unit"), units, chosen=self.draw_again)
        self.note = ElidedLabel(role="dim")
        tools = row(
            label(tr("By"), "dim", wrap=False),
            self.grouping,
            self.unit,
            self.note,
            stretch=3,
            margin=(GAP, CLOSE, GAP, 0),
        )
        self.show_plot(tr("Time by op"), tools)

    def missing(self, document: Document) -> str:
        """Needs a target whose ops were timed."""
        return "" if timed_runs(document) else tr("The time of every op appears here after a run that measures.")

    def update_from(self, document: Document) -> None:
        """Draw the bars."""
        self._runs = timed_runs(document)
        words, group_of = GROUPINGS[str(self.grouping.currentData())]
        made_of = (words, *(one.ops for one in self._runs))
        if not are_same(made_of, self._made_of):
            self._made_of = made_of
            self.parts = parts_of(self._runs, group_of)
        is_share = self.unit.currentData() == "share"
        unit = tr("share of the time of all ops, %") if is_share else "ms"
        plot = self.chart.start(tr("Time by {words}, {unit}", words=words, unit=unit), self.colours)
        sums = [self._y_end(at) for at in range(len(self._runs))]
        self._scale = [100 / whole if is_share and whole else 1.0 for whole in sums]
        longest = max((whole * scale for whole, scale in zip(sums, self._scale, strict=True)), default=1.0)
        for group in dict.fromkeys(part.group for part in self.parts):
            self._draw_group(plot, group, longest, document)
        self.chart.name_rows([one.name for one in self._runs])
        plot.setXRange(0, longest * 1.02, padding=0)
        self.chart.describe("; ".join(self._tip(part).replace("\n", ", ") for part in self.parts))
        self.note.setText(self._words(document))

    def _draw_group(self, plot: pg.PlotItem, group: str, longest: float, document: Document) -> None:
        groups = list(dict.fromkeys(part.group for part in self.parts if part.group != ALL_OTHERS))
        series = self.colours.series
        colour = self.colours.faded if group == ALL_OTHERS else series[groups.index(group) % len(series)]
        if group in self.colours.precision:
            colour = self.colours.precision[group]
        selected = set(document.selection.op_ids)
        for part in (one for one in self.parts if one.group == group):
            is_selected = bool(selected) and selected <= set(part.op_ids)
            bar = pg.BarGraphItem(
                x0=[part.start_ms * self._scale[part.row]],
                y=[self._y(part.row)],
                height=_BAR,
                width=[part.width_ms * self._scale[part.row]],
                brush=pg.mkBrush(colour),
                pen=pg.mkPen(
                    self.colours.accent if is_selected else self.colours.surface, width=2 if is_selected else 1
                ),
            )
            bar.setToolTip(self._tip(part))
            plot.addItem(bar)
            self._write(part, longest, text_on(colour))

    def _write(self, part: BarPart, longest: float, colour: str) -> None:
        """Write the name into a part that is wide enough."""
        scale = self._scale[part.row]
        room = (part.width_ms * scale) / (longest or 1.0) * max(80.0, self.chart.plot.getViewBox().width())
        if room > self.fontMetrics().horizontalAdvance(part.group) + 10:
            middle = (part.start_ms + part.width_ms / 2) * scale
            self.chart.write(part.group, middle, self._y(part.row), colour=colour, anchor=(0.5, 0.5))

    def _y_end(self, at: int) -> float:
        return max((part.start_ms + part.width_ms for part in self.parts if part.row == at), default=0.0)

    def _y(self, at: int) -> float:
        return len(self._runs) - 1 - at

    def _tip(self, part: BarPart) -> str:
        one = self._runs[part.row]
        whole = self._y_end(part.row)
        share = tr("{number:.0f} % of its ops", number=100 * part.width_ms / whole) if whole else ""
        return f"{one.name}: {part.group}\n{ms_text(part.width_ms)}, {share}, {plural(len(part.op_ids), 'op')}"

    def _words(self, document: Document) -> str:
        """How much of the latency the ops explain, for the selected run or the baseline."""
        wanted = document.selection.run
        one = next((one for one in self._runs if one.run == wanted), self._runs[0] if self._runs else None)
        if one is None or one.profile is None:
            return tr("Click a part to select its ops")
        found = one.profile
        rest = tr("{time} around them", time=ms_text(max(0.0, found.uncovered_ms)))
        sizes = f" ({found.measured_input})" if found.measured_input else ""
        return tr(
            "{name}: ops {time}, the whole {time2}; {rest}. {source}",
            name=f"{one.name}{sizes}",
            time=ms_text(found.ops_ms),
            time2=ms_text(found.latency_ms),
            rest=rest,
            source=found.source,
        )

    def clicked(self, event: object) -> None:
        """Select the ops of the part, and its run."""
        place = self.chart.plot.vb.mapSceneToView(event.scenePos())  # type: ignore[attr-defined]
        part = self.part_at(place.x(), place.y())
        if part is not None:
            self.session.view.select_run(part.run)
            self.session.view.select(part.op_ids)

    def part_at(self, x: float, y: float) -> BarPart | None:
        """The part under a place of the plot."""
        for part in self.parts:
            start = part.start_ms * self._scale[part.row]
            is_inside = start <= x <= start + part.width_ms * self._scale[part.row]
            if is_inside and abs(y - self._y(part.row)) <= _BAR / 2:
                return part
        return None
