"""The columns of the list of past runs."""

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np

from ace_studio.gui.style import Colours, tr
from ace_studio.gui.widgets.table_look import figure_columns
from ace_studio.gui.widgets.table_model import Column
from ace_studio.gui.words.formatting import NOTHING, bytes_text
from ace_studio.session.kept.history import RunSummary

_MOODS: dict[str, Callable[[Colours], str]] = {
    "failed": lambda colours: colours.bad,
    "crashed": lambda colours: colours.bad,
    "goal-not-met": lambda colours: colours.warn,
    "cancelled": lambda colours: colours.text_dim,
}


def history_columns(runs: Sequence[RunSummary], colours: Colours) -> list[Column]:
    """The columns of the list, one row per run; names, notes and tags only where a run has one."""

    def of(read: Callable[[RunSummary], object]) -> list[object]:
        return [read(run) for run in runs]

    def mood(at: int) -> str:
        status = runs[at].status
        return _MOODS.get(status, lambda _: "")(colours)

    def where_any(column: Column) -> list[Column]:
        return [column] if any(column.values) else []

    is_told_apart = len({when_text(run.date) for run in runs}) == len(runs)
    dates = np.array([_seconds(run.date) for run in runs])
    return [
        Column(title="when", values=of(lambda run: run.date), text=when_text if is_told_apart else _to_the_second,
               width=138 if is_told_apart else 158, order=dates),
        Column(title="model", values=of(lambda run: run.title), width=130),
        Column(title="chosen", values=of(lambda run: f"{run.target} {run.precision}".strip() or NOTHING), width=170),
        *where_any(Column(title="name", values=of(lambda run: run.name), width=110, tips=lambda at: runs[at].name)),
        Column(title="outcome", values=of(lambda run: tr(run.status.replace("-", " "))), width=84, colour=mood),
        *figure_columns(runs),
        Column(title="size", values=of(lambda run: run.size_bytes), text=bytes_text, is_number=True, width=84),
        *where_any(Column(title="note", values=of(lambda run: run.note), width=160, tips=lambda at: runs[at].note)),
        *where_any(Column(title="tags", values=of(lambda run: ", ".join(run.tags)), width=90)),
        Column(title="folder", values=of(lambda run: run.output), width=260, tips=lambda at: runs[at].output,
               colour=lambda _: colours.text_dim),
    ]  # fmt: skip


def _seconds(date: str) -> float:
    try:
        return datetime.fromisoformat(date).timestamp()
    except ValueError:
        return float("nan")


def when_text(date: object, form: str = "%Y-%m-%d %H:%M") -> str:
    """Local time, without another ``form`` to the minute."""
    try:
        return format(datetime.fromisoformat(str(date)).astimezone(), form)
    except ValueError:
        return str(date)


def _to_the_second(date: object) -> str:
    return when_text(date, "%Y-%m-%d %H:%M:%S")
