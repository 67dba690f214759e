"""The axes of the trade-off: costs and losses, each with the bound of the goal on it."""

from collections.abc import Callable
from dataclasses import dataclass

from ace_studio.gui.style import tr
from ace_studio.gui.words.formatting import bytes_text, decibel_text, ms_text, percent_text
from ace_studio.records.results import SearchStep, TargetRun
from ace_studio.records.results.on_devices import device_names, figure_on
from ace_studio.session.document import Document


@dataclass(frozen=True, kw_only=True)
class AxisRow:
    """One quantity on an axis. Positions in the plot are in its unit."""

    id: str
    text: str
    title: str
    """With its unit, for the axis."""
    is_most: bool
    """Less is better, and the goal is an upper bound."""
    of_run: Callable[[TargetRun, Document], float | None]
    of_step: Callable[[SearchStep, Document], float | None]
    """Of a step of a search."""
    words: Callable[[float], str]
    of_baseline: Callable[[Document], float | None] = lambda _: None
    bound: str = ""
    """Row of `BOUNDS` that its line sets; empty: there is none."""
    from_goal: Callable[[float, Document], float | None] = lambda value, _: value
    """Value of the goal -> position in the plot; None if unknown yet."""
    to_goal: Callable[[float, Document], float | None] = lambda value, _: value


def _baseline_ms(document: Document) -> float | None:
    baseline = document.baseline
    return baseline.latency_ms.p50 if baseline is not None and baseline.latency_ms is not None else None


def _times_baseline(ratio: float | None, document: Document) -> float | None:
    whole = _baseline_ms(document)
    return ratio * whole if whole and ratio is not None else None


def _over_baseline(latency_ms: float, document: Document) -> float | None:
    whole = _baseline_ms(document)
    return latency_ms / whole if whole else None


LATENCY = AxisRow(
    id="latency", text="latency", title=tr("latency in ms"), is_most=True, bound="max_latency_ratio", words=ms_text,
    of_run=lambda run, _: run.latency_ms.p50 if run.latency_ms else None,
    of_baseline=_baseline_ms,
    of_step=lambda step, document: _times_baseline(step.latency_ratio, document),
    from_goal=_times_baseline, to_goal=_over_baseline,
)  # fmt: skip
SIZE = AxisRow(
    id="size", text="size", title=tr("size in MB"), is_most=True, bound="max_size_mb",
    words=lambda size: bytes_text(size * 1e6),
    of_run=lambda run, _: run.size_bytes / 1e6 if run.size_bytes else None,
    of_step=lambda step, _: step.size_bytes / 1e6 if step.size_bytes else None,
    of_baseline=lambda document: document.baseline.size_bytes / 1e6
    if document.baseline and document.baseline.size_bytes else None,
)  # fmt: skip
DROP = AxisRow(
    id="drop", text=tr("accuracy drop"), title=tr("accuracy drop in %"), is_most=True, bound="max_drop",
    words=lambda drop: percent_text(drop / 100),
    of_run=lambda run, _: None if run.metric_drop is None else 100 * run.metric_drop,
    of_step=lambda step, _: None if step.metric_drop is None else 100 * step.metric_drop,
    of_baseline=lambda document: 0.0 if document.baseline and document.baseline.metric is not None else None,
    from_goal=lambda value, _: 100 * value, to_goal=lambda value, _: value / 100,
)  # fmt: skip
SQNR = AxisRow(
    id="sqnr", text=tr("fidelity (SQNR)"), title=tr("SQNR in dB"), is_most=False,
    bound="min_sqnr_db", words=decibel_text,
    of_run=lambda run, _: None if run.fidelity is None else min(run.fidelity, 120.0),
    of_step=lambda step, _: None if step.fidelity is None else min(step.fidelity, 120.0),
)  # fmt: skip
COSTS = (LATENCY, SIZE)
LOSSES = (DROP, SQNR)


def device_axes(document: Document) -> tuple[AxisRow, ...]:
    """The latency on each device that has figures. The baseline has none there, and the goal is about this machine."""
    return tuple(map(_device_axis, device_names(document.runs)))


def _device_axis(name: str) -> AxisRow:
    def on_it(run: TargetRun, _: Document) -> float | None:
        figure = figure_on(run, name)
        return None if figure is None else figure.latency_ms.p50

    return AxisRow(
        id=f"device {name}",
        text=tr("latency on {device}", device=name),
        title=tr("latency on {device} in ms", device=name),
        is_most=True,
        words=ms_text,
        of_run=on_it,
        of_step=lambda _, __: None,
    )
