"""The columns of the table of jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ace_studio.gui.style.colours import Colours
from ace_studio.gui.style.language import told, tr
from ace_studio.gui.widgets.table_model import Column
from ace_studio.gui.words.formatting import Unit, bytes_text, decibel_text, metric_text, percent_text, ratio_text
from ace_studio.records.sweeps import RowStatus, SweepRow

_GOAL = {None: "", True: tr("met"), False: tr("not met")}


def sweep_columns(rows: Sequence[SweepRow], colours: Colours) -> list[Column]:
    """One column per axis, then the figures of each job's run."""

    def of(read: Callable[[SweepRow], object]) -> list[object]:
        return [read(row) for row in rows]

    def mood(at: int) -> str:
        row = rows[at]
        return colours.good if row.on_front else "" if row.status is RowStatus.DONE else colours.bad

    def why(at: int) -> str:
        error = rows[at].error
        return "\n".join(map(told, filter(None, (error.what, error.why, error.remedy)))) if error else ""

    unit = Unit.of(row.latency_ms for row in rows)
    tip = tr("No comparable job is at least as good in time, size and accuracy and better in one")
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes))
    has_recipes = len({row.recipe for row in rows}) > 1
    return [
        Column(title="job", values=of(lambda row: int(row.job)), is_number=True, width=48),
        *([Column(title="recipe", values=of(lambda row: row.recipe), width=130)] if has_recipes else []),
        *(Column(title=axis, values=[row.axes.get(axis, "") for row in rows], width=112) for axis in axes),
        Column(title="front", values=of(lambda row: row.on_front), text=lambda is_on: "●" if is_on else "", width=52,
               colour=mood, tip=tip),
        Column(title="outcome", values=of(_outcome), width=180, colour=mood, tips=why),
        Column(title=tr("latency, {unit}", unit=unit.name), values=of(lambda row: row.latency_ms),
               text=unit.text, is_number=True,
               width=92),
        Column(title="speed-up", values=of(lambda row: row.speedup), text=ratio_text, is_number=True, width=84,
               tip="Over eager fp32"),
        Column(title="vs fp32", values=of(lambda row: row.float_speedup), text=ratio_text, is_number=True, width=76,
               tip=tr("Over fp32 in the same runtime; nothing where that was not measured")),
        Column(title="metric", values=of(lambda row: row.metric), text=metric_text, is_number=True, width=76),
        Column(title="drop", values=of(lambda row: row.metric_drop), text=percent_text, is_number=True, width=76),
        Column(title="SQNR", values=of(lambda row: row.sqnr_db), text=decibel_text, is_number=True, width=84),
        Column(title="size", values=of(lambda row: row.size_bytes), text=bytes_text, is_number=True, width=84),
        Column(title="goal", values=of(lambda row: _GOAL[row.goal_met]), width=68),
        Column(title="host", values=of(lambda row: row.host), width=110, colour=lambda _: colours.text_dim),
    ]  # fmt: skip


def _outcome(row: SweepRow) -> str:
    if row.status is RowStatus.DONE:
        return f"{row.target} {row.precision}"
    return f"{row.status}: {told(row.error.what)}" if row.error else str(row.status)
