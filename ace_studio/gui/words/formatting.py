"""Numbers as text for the window."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ace_studio.gui.style import number, tr
from ace_studio.records.graph import sizes_of
from ace_studio.records.results import AttemptStatus, TargetRun
from ace_studio.records.results.words import digits_of
from ace_studio.session.comparison.figures import Difference
from ace_studio.session.kept.history import RunSummary

NOTHING = "–"
"""Shown for a value that was not measured; never a zero."""
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")
_COUNT_UNITS = ("", "k", "M", "G", "T", "P")


def bytes_text(count: float | None) -> str:
    """Bytes in powers of 1000, three digits: ``1.23 MB``."""
    return NOTHING if count is None else _scaled(count, _BYTE_UNITS)


def count_text(count: float | None, unit: str = "") -> str:
    """A large count, three digits: ``4.12 G`` + unit."""
    return NOTHING if count is None else _scaled(count, tuple(f"{prefix}{unit}" for prefix in _COUNT_UNITS))


def ms_text(latency_ms: float | None) -> str:
    """A time in milliseconds with four digits, in microseconds or seconds where that reads better."""
    unit = Unit.of([latency_ms])
    return NOTHING if latency_ms is None else f"{unit.text(latency_ms)} {unit.name}"


TIMES = ((0.1, "µs", 1e3), (10_000.0, "ms", 1.0), (math.inf, "s", 1e-3))
"""Below how many milliseconds a unit is read best, its name, and how many of it are a millisecond."""
SIZES = ((100.0, "B", 1.0), (1e5, "kB", 1e-3), (1e8, "MB", 1e-6), (math.inf, "GB", 1e-9))
"""The same for bytes."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit for all values of a column or an axis."""

    name: str = "ms"
    factor: float = 1.0
    digits: int = 4

    @classmethod
    def of(cls, values: Iterable[float | None], units: tuple[tuple[float, str, float], ...] = TIMES) -> Unit:
        """The unit in which these values are read best: times in milliseconds, or sizes in bytes."""
        known = sorted(value for value in values if value)
        if not known:
            return cls()
        name, factor = next((name, factor) for below, name, factor in units if known[len(known) // 2] < below)
        return cls(name=name, factor=factor, digits=4 if units is TIMES else 3)

    def text(self, value: float | None) -> str:
        """A value in this unit, without the unit."""
        return self.number(None if value is None else value * self.factor)

    def number(self, value: float | None) -> str:
        """A value that is in this unit already."""
        return NOTHING if value is None else _digits(value, self.digits)


def seconds_text(seconds: float) -> str:
    """Elapsed time: ``3.2 s``, ``1:05``, ``1:02:03``."""
    if seconds < 60:
        return f"{number(seconds, '.1f')} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def percent_text(fraction: float | None) -> str:
    """A fraction as percent: 0.0123 is ``1.23 %``."""
    if fraction is None:
        return NOTHING
    percent = fraction * 100
    if abs(percent) < 0.005:
        return "0 %"
    return f"{number(percent, '.2f')} %"


def metric_text(metric: float | None) -> str:
    """The user's metric, four digits after the point, as they wrote it (no percent)."""
    return NOTHING if metric is None else number(metric, ".4f")


def decibel_text(decibel: float | None) -> str:
    """A signal-to-noise ratio; above 120 dB the outputs agree to the last digits of fp32."""
    return NOTHING if decibel is None else tr("exact") if decibel > 150 else f"{number(decibel, '.1f')} dB"


def ratio_text(ratio: float | None) -> str:
    """How many times as fast, or as large: ``2.10×``."""
    return NOTHING if ratio is None else f"{number(ratio, '.2f')}×"


def run_text(run: RunSummary) -> str:
    """A run of the history in one line, as `RunSummary.summary` has it, in the language of the window."""
    parts = [tr(run.status.replace("-", " ")), f"{run.target} {run.precision}".strip()]
    parts += [show(one) for one, show in ((run.latency_ms, ms_text), (run.speedup, ratio_text)) if one is not None]
    if run.float_speedup is not None:
        parts.append(tr("{times} against fp32 there", times=ratio_text(run.float_speedup)))
    if run.metric_drop is not None:
        parts.append(tr("drop {drop}", drop=percent_text(run.metric_drop)))
    return ", ".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class RatioText:
    """A speed-up as text."""

    text: str
    interval: str
    is_clear: bool
    """False if the interval contains 1: no difference was measured."""


def speedup_text(run: TargetRun) -> RatioText:
    """The speed-up over the original with its 95 % interval, or that there is no measurable difference."""
    return _ratio_text(run, "speedup")


def float_speedup_text(run: TargetRun) -> RatioText:
    """The same over fp32 in the same runtime, or that it was not measured; nothing for the fp32 run itself."""
    if run.lacks_float_time:
        return RatioText(text=tr("not measured"), interval="", is_clear=False)
    return _ratio_text(run, "float_speedup")


def _ratio_text(run: TargetRun, name: str) -> RatioText:
    ratio, low, high = (getattr(run, name + end) for end in ("", "_low", "_high"))
    if ratio is None:
        return RatioText(text=NOTHING, interval="", is_clear=False)
    interval, times = "", ratio_text(ratio)
    if low is not None and high is not None:
        interval = f"{number(low, '.2f')} – {number(high, '.2f')}"
    if run.speed_undecided:
        interval = f"{run.speed_undecided}: {times}  {interval}"
        return RatioText(text=tr("not decided"), interval=interval, is_clear=False)
    if low is not None and high is not None and low <= 1 <= high:
        return RatioText(text=tr("no difference seen"), interval=interval, is_clear=False)
    return RatioText(text=times, interval=interval, is_clear=True)


def shape_text(shape: str | tuple[int, ...]) -> str:
    """A shape with multiplication signs: ``1 × 3 × 224``; a scalar says so."""
    sizes = sizes_of(shape) if isinstance(shape, str) else [str(size) for size in shape]
    return " × ".join(sizes) or tr("scalar")


def plural(count: int, noun: str) -> str:
    """A count with its noun: ``1 op``, ``12 ops``."""
    return f"{number(count, ',')} {tr(noun if count == 1 else f'{noun}s')}"


def sentence(text: str) -> str:
    """Text with a capital and a full stop; a code name at the start is not changed."""
    text = text.strip()
    first = text.split(" ", 1)[0]
    if first.isalpha():
        text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?:" else f"{text}."


def _scaled(value: float, units: tuple[str, ...]) -> str:
    step = 0
    while abs(value) >= 999.5 and step < len(units) - 1:
        value /= 1000
        step += 1
    number = f"{value:.0f}" if step == 0 else _digits(value, 3)
    return f"{number} {units[step]}".rstrip()


def _digits(value: float, count: int = 4) -> str:
    return number(value, digits_of(value, count))


def unclear_words(found: Difference) -> str:
    """Why a change is none: without an interval the values are equal."""
    return tr("the same") if found.low is None else tr("within noise")


ATTEMPT_LOOKS: dict[AttemptStatus, tuple[str, str, str]] = {
    AttemptStatus.OK: (tr("captured, equal to the original"), "good", "good"),
    AttemptStatus.FAILED: (tr("could not capture it"), "bad", "bad"),
    AttemptStatus.WRONG: (tr("captured, but not equal to the original"), "bad", "bad"),
    AttemptStatus.TIMEOUT: (tr("took too long"), "clock", "warn"),
    AttemptStatus.CRASHED: (tr("ended the engine process"), "bad", "bad"),
    AttemptStatus.SKIPPED: (tr("not tried"), "skip", "dim"),
}
"""How a capture attempt ended -> words, icon, role."""
