"""The figures that README claims: one record each, the file of the last run, and the table that is made of it."""

import os
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import psutil

from ace_studio.engine.environment import processor_name
from ace_studio.engine.measure import Ratio, Samples, ratio_of
from ace_studio.records.results import OpReport, Result

README = Path(__file__).resolve().parents[2] / "README.md"
KEPT = Path(__file__).with_name("figures.json")
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
ON_PAGE = (
    "capture.whole", "capture.time", "peers.held", "peers.worst", "peers.ahead", "kept.held", "kept.worst",
    "kept.ahead", "goals.held", "mixtures.faster", "mixtures.builds", "rounding.wordsim.gptq",
    "rounding.bert_base.gptq", "layout.worst", "graph-view.held", "window.gap", "window.gesture", "window.p99",
    "start.window.wall_s",
    "start.window.cpu_s", "start.window.rss_mib", "start.engine.wall_s", "start.engine.rss_mib",
    "scale.arrival.200000", "scale.layout.200000", "scale.list.10000", "sweep.rate",
    "sweep.overhead", "time.digits", "time.mobilenet_v2", "time.minilm", "time.bert_base", "example.ceiling",
    "time.mobilenet_v2.ceiling", "time.minilm.ceiling", "time.bert_base.ceiling",
)  # fmt: skip
"""What the table shows, in this order, besides everything that is lost."""


def machine_here() -> str:
    """Processor, cores, memory and torch of this machine."""
    memory_gib = round(psutil.virtual_memory().total / 2**30)
    return f"{processor_name()}, {os.cpu_count()} cores, {memory_gib} GiB, torch {version('torch')}"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One claim with its figure."""

    id: str
    """Name of the benchmark, a dot, and the rest."""
    what: str
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
    return ratio_of(Samples(wall_ms=list(values)), Samples(wall_ms=[1.0] * len(values)))


def median_of(name: str, what: str, found: Ratio, unit: str = "x", **more: Any) -> Figure:
    """A figure with an interval; one of unit ``x`` is lost if all of the interval is below 1."""
    is_lost = unit == "x" and found.high < 1.0
    more = {"low": found.low, "high": found.high, "lost": is_lost} | more
    return Figure(id=name, what=what, value=found.median, unit=unit, **more)


def ceilings_of(name: str, result: Result) -> list[Figure]:
    """The share of this machine's ceilings that the chosen run reaches, beside the original's; none without a profile.

    It is the least time that the timed ops could take, by the roofline of their precision, over what they take.
    """
    run = None if result.chosen is None else result.runs[result.chosen]
    ours, theirs = (_share(one.ops) if one is not None else None for one in (run, result.baseline))
    if run is None or ours is None or result.baseline is None or result.ceilings is None:
        return []
    machine = f"one core, {result.ceilings.gflops['fp32']:.0f} GFLOP/s at fp32, {result.ceilings.gbytes_per_s:.0f} GB/s"
    what = f"share of the ceilings ({machine}): {run.target} {run.precision}"
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
    print("\n".join(_line(one) for one in figures))
    return int(any(one.lost for one in figures))


def page(figures: Iterable[Figure]) -> str:
    """The table, without what was timed on a busy machine or measured in part only."""
    firm = {one.id: one for one in figures if (one.counted or not one.busy) and not one.quick}
    shown = [firm[name] for name in ON_PAGE if name in firm]
    shown += [one for one in firm.values() if one.lost and one.id not in ON_PAGE]
    if not shown:
        return "No run on a quiet machine is kept yet.\n"
    dates = sorted(one.date for one in shown)
    machines = "; ".join(dict.fromkeys(one.machine for one in shown))
    measured = f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} on {machines}."
    lines = [
        f"{measured} Intervals are at 95 %. `x`: the time of the other over ours, above 1 ours is faster.",
        "",
        "| what | ours | interval | beside | |",
        "|---|---|---|---|---|",
        *(_line(one) for one in shown),
    ]
    return "\n".join(lines) + "\n"


def _line(one: Figure) -> str:
    interval = "" if one.low is None or one.high is None else f"{_words(one.low)} – {_words(one.high)}"
    beside = one.peer if one.peer_value is None else f"{one.peer}: {_words(one.peer_value)}"
    cells = (one.what, f"{_words(one.value)} {one.unit}".strip(), interval, beside, "**lost**" if one.lost else "")
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _words(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def with_page(text: str, table: str) -> str:
    """The README with this table between its markers. Raises: ValueError if the markers are missing."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table}{END}{after}"
