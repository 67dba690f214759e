"""What the kept figures become: the page of the help, its plots, and the figures of the README."""

import textwrap
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from tests.benchmarks.figures import Figure, digits, sentence

ROOT = Path(__file__).resolve().parents[2]
README, HELP = ROOT / "README.md", ROOT / "resources" / "help"
PAGE = HELP / "figures.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
GROUPS = {
    "Capture": ("capture.*", "partial.*", "slow-traces.*"),
    "Speed": ("kept.*", "peers.*", "mixtures.*", "decode.*", "intervals.*", "example.*", "*.ceiling"),
    "Fidelity": ("goals.*", "rounding.*", "sensitivity.*"),
    "Time": ("time.*", "builds.*", "sweep.*"),
    "Window": ("start.*", "scale.*", "layout.*", "graph-view.*", "panels.*", "window.*"),
}
"""Group -> its figures; the first group that fits is that of a figure."""
ON_PAGE = (
    "capture.*", "kept.*", "peers.*", "mixtures.faster", "mixtures.builds", "intervals.*", "example.speed", "goals.*",
    "rounding.*", "time.*", "sweep.*", "start.*", "scale.arrival.200000", "scale.layout.200000", "scale.list.10000",
    "layout.*", "graph-view.*", "panels.*", "window.*",
)  # fmt: skip
"""What the page shows, in this order, besides everything that is lost."""
IN_README = ("kept.held", "capture.time", "capture.whole", "peers.held", "goals.held", "time.mobilenet_v2")


class Plot(NamedTuple):
    """Bars of some figures of one unit."""

    title: str
    rows: dict[str, str]
    """Pattern of ids -> label, with the parts of the id, the last one as a number, and the peer to be filled in."""
    unit: str
    line: float | None = None
    """What a bar must reach."""


PLOTS = {
    "Capture": Plot("Architectures captured whole and proven", {"capture.whole": "ACE Studio"}, "of"),
    "Speed": Plot(
        "Times as fast as the other (1: as fast), with the interval at 95 %",
        {
            "capture.time": "a capture with its proof, beside {peer}",
            "kept.worst": "the worst of the models that nobody tuned for, beside {peer}",
            "peers.worst": "the worst of the models of the comparison, beside {peer}",
            "mixtures.*": "mixture of {part[1]}, beside {peer}",
        },
        "x",
        1.0,
    ),
    "Fidelity": Plot(
        "SQNR in dB gained by learned rounding (the claim, 2, is for GPTQ and AWQ)",
        {"rounding.*": "{part[1]}, beside {peer}"},
        "dB",
        2.0,
    ),
    "Time": Plot("Seconds from a model's file to a verified artifact", {"time.*": "{part[1]}"}, "s"),
    "Window": Plot(
        "Seconds until it is there",
        {
            "start.window.wall_s": "the window, until its first paint",
            "start.engine.wall_s": "the engine's process, until it is ready",
            "scale.arrival.*": "a graph of {size} ops, until it is drawn",
        },
        "s",
    ),
}
HEAD = """\
# What was measured

{count} figures, of which {lost} are lost: the other tool is better beyond the interval, or a limit or a claim is
missed. Lost figures come first in each group, and none is left out.
{measured}

*Times as fast* is the other's time over ours: above 1 ours is faster. *Within the noise* means that the interval, at
95 %, reaches 1. No time here was measured beside other work. Each figure stands in `tests/benchmarks/figures.json` with
its command, date and machine, and the docstring of its benchmark says how it is measured. Models have the names of
`tests/benchmarks/peers/row.py`.
"""
FOOT = """\
## Measure it yourself

From a checkout, on a machine that does nothing else; it takes hours:

```bash not-run: takes hours, on a machine that does nothing else
packaging/ace setup --test
.venv/bin/python -m tests.benchmarks.all --out DIR
.venv/bin/python -m tests.benchmarks.all --page DIR/figures.json
```

The last line writes this page, its plots and the figures of the README. `tests/benchmarks/README.md` says which
question each benchmark answers, and what it needs.
"""


def made_of(figures: Iterable[Figure]) -> dict[Path, str]:
    """The text of every file that is made of the figures."""
    firm = [one for one in figures if (one.counted or not one.busy) and not one.quick]
    drawn = {group: bars for group, plot in PLOTS.items() if (bars := bars_of(plot, firm))}
    made = {HELP / picture_name(group): svg(PLOTS[group], bars) for group, bars in drawn.items()}
    return made | {PAGE: page(firm), README: with_lines(README.read_text(encoding="utf-8"), in_readme(firm))}


def picture_name(group: str) -> str:
    """The plot of a group, beside the page."""
    return f"figures-{group.casefold()}.svg"


def group_of(name: str) -> str:
    """The group of a figure's id. Raises: StopIteration if it has none."""
    return next(group for group, patterns in GROUPS.items() if any(fnmatch(name, one) for one in patterns))


def shown(figures: Sequence[Figure]) -> list[Figure]:
    """What the page shows: what is lost, then the others, each in the order of `ON_PAGE`."""
    order = {one.id: next((at for at, name in enumerate(ON_PAGE) if fnmatch(one.id, name)), None) for one in figures}
    listed = [one for one in figures if one.lost or order[one.id] is not None]
    return sorted(listed, key=lambda one: (not one.lost, len(ON_PAGE) if (at := order[one.id]) is None else at))


def page(figures: Sequence[Figure]) -> str:
    """The page of the help: the figures by group, each with its plot."""
    listed = shown(figures)
    parts = [HEAD.format(count=len(listed), lost=sum(one.lost for one in listed), measured=measured(listed))]
    for group, plot in PLOTS.items():
        if own := [one for one in listed if group_of(one.id) == group]:
            parts.append(f"## {group}\n\n{bullets(own)}")
            parts += [f"![{plot.title}]({picture_name(group)})\n"] * bool(bars_of(plot, figures))
    return "\n".join([*parts, FOOT])


def bullets(figures: Iterable[Figure]) -> str:
    """A sentence for each figure, in lines of the pages' width."""
    marks = {"width": 120, "initial_indent": "- ", "subsequent_indent": "  ", "break_on_hyphens": False}
    return "".join(f"{textwrap.fill(sentence(one), **marks)}\n" for one in figures)


def measured(figures: Sequence[Figure]) -> str:
    """When and where, in a sentence."""
    if not figures:
        return "No run on a quiet machine is kept yet."
    dates, machines = sorted(one.date for one in figures), dict.fromkeys(one.machine for one in figures)
    return f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} on {'; '.join(machines)}."


def in_readme(figures: Sequence[Figure]) -> str:
    """The figures of the README, those that are lost first, and where all are."""
    by_id, listed = {one.id: one for one in figures}, shown(figures)
    chosen = sorted((by_id[name] for name in IN_README if name in by_id), key=lambda one: not one.lost)
    where = f"[All {len(listed)} figures](resources/help/figures.md), {sum(one.lost for one in listed)} of them lost"
    return f"{bullets(chosen)}\n{measured(chosen)}\n{where}, with plots.\n"


def with_lines(text: str, lines: str) -> str:
    """A text with these lines between its markers. Raises: ValueError if the markers are missing."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{lines}{END}{after}"


# --- plots ---

WIDTH, ROW, MARGIN, BARS = 620, 38, 14, 480
OURS, LOST, PEER, TEXT, DIM, PAPER = "#2f6fde", "#cf4a1f", "#9aa3b2", "#1d2430", "#5a6472", "#f7f8fa"
"""Readable on its own ground, which is the same in light and dark windows."""


class Bar(NamedTuple):
    """One bar, with its label above it."""

    label: str
    colour: str
    value: float
    words: str
    low: float | None = None
    high: float | None = None


def bars_of(plot: Plot, figures: Iterable[Figure]) -> list[Bar]:
    """A bar for each figure of the plot, those that are lost first, and one for the value of its peer."""
    own = [one for one in figures if one.unit.split(" ")[0] == plot.unit]
    found = [(one, label) for pattern, label in plot.rows.items() for one in own if fnmatch(one.id, pattern)]
    bars = []
    for one, label in sorted(found, key=lambda pair: not pair[0].lost):
        words = f"{digits(one.value)} {one.unit}".removesuffix(" x") + ", lost" * one.lost
        *_, last = part = one.id.split(".")
        title = label.format(part=part, size=f"{int(last):,}" if last.isdigit() else last, peer=one.peer)
        bars.append(Bar(title, LOST if one.lost else OURS, one.value, words, one.low, one.high))
        if one.peer_value is not None:
            bars.append(Bar(one.peer, PEER, one.peer_value, digits(one.peer_value)))
    return bars


def svg(plot: Plot, bars: Sequence[Bar]) -> str:
    """Horizontal bars with their intervals, each with a line at what it must reach."""
    scale = BARS / max([plot.line or 0.0, *(max(one.value, one.high or 0.0) for one in bars)])
    top, height = 40, 40 + ROW * len(bars) + MARGIN

    def x(value: float) -> float:
        return round(MARGIN + scale * max(0.0, value), 1)

    def text(across: float, down: float, words: str, look: str = f'fill="{TEXT}" font-size="12"') -> str:
        return f'<text x="{across}" y="{down}" {look}>{escape(words)}</text>'

    def stroke(points: str, look: str) -> str:
        return f'<path d="{points}" fill="none" stroke="{TEXT}" {look}/>'

    def block(width: float, height: float, look: str) -> str:
        return f'<rect width="{width}" height="{height}" {look}/>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">',
        block(WIDTH, height, f'rx="6" fill="{PAPER}"'),
        text(MARGIN, 24, plot.title, f'fill="{TEXT}" font-size="13" font-weight="bold"'),
    ]
    for at, one in enumerate(bars):
        y = top + ROW * at
        parts += [
            text(MARGIN, y + 11, one.label, f'fill="{DIM}" font-size="12"'),
            block(round(x(one.value) - MARGIN, 1), 12, f'x="{MARGIN}" y="{y + 16}" rx="2" fill="{one.colour}"'),
            text(x(max(one.value, one.high or 0.0, plot.line or 0.0)) + 8, y + 26, one.words),
        ]
        if one.low is not None and one.high is not None:
            ends = f"M{x(one.low)} {y + 22}H{x(one.high)}M{x(one.low)} {y + 18}v8M{x(one.high)} {y + 18}v8"
            parts.append(stroke(ends, 'stroke-width="1.4"'))
        if plot.line is not None:
            parts.append(stroke(f"M{x(plot.line)} {y + 14}v16", 'stroke-width="1.4" stroke-dasharray="3 2"'))
    return "\n".join([*parts, "</svg>"]) + "\n"
