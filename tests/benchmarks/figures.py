"""The figures that the pages claim: one record each, as a sentence, and the file of the last run."""

import os
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil

from ace_studio.engine.environment import processor_name
from ace_studio.engine.measure import BOOTSTRAP_DRAWS, Ratio
from ace_studio.records.results import OpReport, Result
from ace_studio.records.targets import TARGET_ROWS

KEPT = Path(__file__).with_name("figures.json")


def machine_here() -> str:
    """Processor, cores, memory and torch of this machine."""
    memory_gib = round(psutil.virtual_memory().total / 2**30)
    return f"{processor_name()}, {os.cpu_count()} cores, {memory_gib} GiB, torch {version('torch')}"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One claim with its figure."""

    id: str
    """Name of the benchmark, a dot, and the rest."""
    what: str
    """A sentence with the value in it, without its capital letter, its full stop and the interval."""
    value: float
    unit: str = ""
    """``x``: the peer's over ours, above 1 ours is better."""
    low: float | None = None
    high: float | None = None
    peer: str = ""
    peer_value: float | None = None
    lost: bool = False
    """Whether the peer is better beyond the interval, or a limit is exceeded."""
    command: str = ""
    date: str = ""
    machine: str = ""
    busy: bool = False
    """Whether other work was running, so that times mean little."""
    counted: bool = False
    """Whether it is a count that no time has a say in: other work cannot change it."""
    quick: bool = False
    """Whether only a part was run, to try it."""


def spread(values: Sequence[float]) -> Ratio:
    """The median of some values, and its interval at 95 %."""
    known = np.asarray(values)
    draws = np.random.default_rng(0).integers(0, len(known), (BOOTSTRAP_DRAWS, len(known)))
    low, high = np.percentile(np.median(known[draws], axis=1), (2.5, 97.5))
    return Ratio(median=float(np.median(known)), low=float(low), high=float(high))


def median_of(name: str, what: str, found: Ratio, unit: str = "x", **more: Any) -> Figure:
    """A figure with an interval; one of unit ``x`` is lost if all of the interval is below 1."""
    is_lost = unit == "x" and found.high < 1.0
    more = {"low": found.low, "high": found.high, "lost": is_lost} | more
    return Figure(id=name, what=what, value=found.median, unit=unit, **more)


def ceilings_of(name: str, model: str, result: Result) -> list[Figure]:
    """The share of this machine's ceilings that the chosen run reaches, beside the original's; none without a profile.

    It is the least time that the timed ops could take, by the roofline of their precision, over what they take.
    """
    run = None if result.chosen is None else result.runs[result.chosen]
    ours, theirs = (_share(one.ops) if one is not None else None for one in (run, result.baseline))
    if run is None or ours is None or result.baseline is None or result.ceilings is None:
        return []
    core = f"{result.ceilings.gflops['fp32']:.0f} GFLOP/s at fp32, {result.ceilings.gbytes_per_s:.0f} GB/s"
    peer = "" if theirs is None else f"; {result.baseline.name}: {100 * theirs:.0f} %"
    reached = f"{model} at {run.precision} in {TARGET_ROWS[run.target].label} reaches {100 * ours:.0f} %"
    what = f"{reached} of what the arithmetic and memory of one core allow ({core}{peer})"
    return [Figure(id=f"{name}.ceiling", what=what, value=ours, peer=result.baseline.name, peer_value=theirs)]


def _share(ops: Sequence[OpReport]) -> float | None:
    timed = [(one.latency_ms, one.ceiling_share or 0.0) for one in ops if one.latency_ms]
    return sum(took * share for took, share in timed) / sum(took for took, _ in timed) if timed else None


def read(path: Path) -> list[Figure]:
    """The figures of a file; none if it is not there."""
    return msgspec.json.decode(path.read_bytes(), type=list[Figure]) if path.exists() else []


def write(path: Path, figures: Iterable[Figure]) -> None:
    """One figure per line."""
    lines = ",\n".join(msgspec.json.encode(one).decode() for one in figures)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def conclude(folder: Path, figures: Sequence[Figure]) -> int:
    """Leave the figures in a benchmark's folder and print them; returns 1 if one is lost."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "figures.json", figures)
    print("\n".join(map(sentence, figures)))
    return int(any(one.lost for one in figures))


def digits(value: float) -> str:
    """A number with three digits, or as it is where it has more before the point."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def sentence(one: Figure) -> str:
    """A figure as a sentence of Markdown: whether it is lost, what was found, and the interval."""
    lost = "**Lost.** " * one.lost
    interval = "" if one.low is None or one.high is None else f" (95 %: {digits(one.low)} to {digits(one.high)})"
    return f"{lost}{one.what[:1].upper()}{one.what[1:]}{interval}."
