"""The files of a result: ``result.json``, a picture of the comparison, and a report in one file."""

from collections.abc import Callable
from html import escape
from pathlib import Path

from ace_studio.records import results
from ace_studio.records.errors import visible
from ace_studio.records.graph import GraphTable
from ace_studio.records.report_page import page_environment
from ace_studio.records.results import Baseline, Latency, Result, RunStatus, TargetRun
from ace_studio.records.results.on_devices import device_section
from ace_studio.records.results.words import drop_words, megabytes, metric_words, ratio_words
from ace_studio.records.safe_file import write_atomically
from ace_studio.records.time_words import time_words


def write_figures(result: results.Result, folder: Path) -> None:
    """Write ``result.json`` alone. Raises: OSError; then the file is as it was."""
    write_atomically(folder / results.RESULT_NAME, results.encode_result(result))


def write_report(result: results.Result, table: GraphTable | None, folder: Path) -> None:
    """Write the three files into ``folder``, each atomically, the figures (``result.json``) first.

    Raises: OSError for the first that could not be written; the others are tried all the same.

    The report is one file without scripts or links to the outside; every name in it is escaped.
    """
    picture = comparison_svg(result)
    files: dict[str, Callable[[], bytes]] = {
        results.RESULT_NAME: lambda: results.encode_result(result),
        results.PICTURE_NAME: picture.encode,
        results.REPORT_NAME: lambda: _report_html(result, table, picture).encode(),
    }
    failed: list[OSError] = []
    for name, content in files.items():
        try:
            write_atomically(folder / name, content())
        except OSError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _report_html(result: results.Result, table: GraphTable | None, picture: str) -> str:
    environment = page_environment(Path(__file__).parent)
    environment.filters.update(number=_number, megabytes=megabytes, part=_part)
    environment.filters.update(metric=metric_words, drop=drop_words, ratio=ratio_words, devices=device_section)
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result, took=time_words(result), picture=picture, name=table.name if table else "model"
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _part(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


WIDTH, ROW, TOP, LEFT, BAR, OVERSHOOT = 980, 34, 64, 210, 330, 30
INK, FAINT, BASE, CHOSEN, OTHER, BAD = "#1f2933", "#616e7c", "#9aa5b1", "#0b7285", "#74b3c2", "#b42318"


def comparison_svg(result: Result) -> str:
    """An SVG of the baseline and every run. Widths are milliseconds on one scale that starts at zero.

    The medians set the scale: on a busy machine one p90 can be ten times any median and would flatten every bar. A
    spread that is longer than the picture ends in an arrow.
    """
    runs = result.runs
    baseline = result.baseline.latency_ms if result.baseline else None
    longest = max([*(one.latency_ms.p50 for one in runs if one.latency_ms), baseline.p50 if baseline else 0.0, 1e-9])
    height = TOP + ROW * (len(runs) + 1) + 40
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            'font-family="DejaVu Sans, Segoe UI, Helvetica, sans-serif" font-size="13" role="img" '
            'aria-label="Comparison of targets">'
        ),
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(16, 28, "Comparison of targets", size=17, weight="bold"),
        _header(),
    ]
    metric = result.baseline.metric if result.baseline else None
    size = result.baseline.size_bytes if result.baseline else 0
    name = (result.baseline or Baseline()).name
    parts.append(_row(0, f"{name} (baseline)", baseline, longest, BASE))
    parts.append(_figures(0, ("1.00x", ""), metric, size))
    for index, run in enumerate(runs):
        parts.append(_run_row(index + 1, run, longest, is_chosen=index == result.chosen))
    parts.append(_text(16, height - 14, _legend(result), colour=FAINT, size=11))
    return "\n".join([*parts, "</svg>", ""])


def _header() -> str:
    columns = (
        (16, "target"),
        (LEFT, "latency, ms (bar: median; line: p10 to p90)"),
        (640, "speed-up"),
        (710, "vs fp32"),
        (780, "metric"),
    )
    cells = [_text(x, 52, words, colour=FAINT, size=11) for x, words in columns]
    return "".join([*cells, _text(850, 52, "size", colour=FAINT, size=11)])


def _run_row(index: int, run: TargetRun, longest: float, *, is_chosen: bool) -> str:
    label = f"{run.target} {run.built_precision}" + (" \u2713" if is_chosen else "")
    if run.status is not RunStatus.OK or run.latency_ms is None:
        why = run.error.what if run.error else run.not_run or next((one.what for one in run.warnings), str(run.status))
        colour = BAD if run.status is RunStatus.FAILED else FAINT
        y = TOP + ROW * index + 20
        return _text(16, y, label, colour=FAINT) + _text(LEFT, y, _shorten(why, 100), colour=colour, size=11)
    ratios = (
        (run.speedup, run.speedup_low, run.speedup_high),
        (run.float_speedup, run.float_speedup_low, run.float_speedup_high),
    )
    speeds = ("not decided", "") if run.speed_undecided else tuple(_ratio_words(*one) for one in ratios)
    bar = _row(index, label, run.latency_ms, longest, CHOSEN if is_chosen else OTHER)
    note = run.built_words.partition(" (")[2].removesuffix(")")
    below = _text(16, TOP + ROW * index + 32, note, colour=FAINT, size=10) if note else ""
    return bar + _figures(index, speeds, run.metric, run.size_bytes) + below


def _ratio_words(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return ""
    is_nothing = low is not None and high is not None and low <= 1 <= high
    return "none seen" if is_nothing else f"{ratio:.2f}x"


def _row(index: int, label: str, latency: Latency | None, longest: float, colour: str) -> str:
    y = TOP + ROW * index
    parts = [_text(16, y + 20, label)]
    if latency is not None:
        scale = BAR / longest
        low, high = LEFT + latency.p10 * scale, min(LEFT + latency.p90 * scale, LEFT + BAR + OVERSHOOT)
        is_cut = latency.p90 * scale > BAR + OVERSHOOT
        middle = y + 15
        end = "l-5,-4 m5,4 l-5,4" if is_cut else "m0,-4 v8"
        parts.append(
            f'<rect x="{LEFT}" y="{y + 5}" width="{latency.p50 * scale:.1f}" height="20" rx="2" fill="{colour}"/>'
            f'<path d="M{low:.1f},{middle - 4} v8 m0,-4 H{high:.1f} {end}" fill="none" stroke="{INK}" '
            'stroke-width="1.5"/>'
        )
        parts.append(_text(max(high, LEFT + latency.p50 * scale) + 8, y + 20, f"{latency.p50:.3g}", size=12))
    return "".join(parts)


def _figures(index: int, speeds: tuple[str, ...], metric: float | None, size: int | None) -> str:
    y = TOP + ROW * index + 20
    metric_text = "\u2013" if metric is None else f"{metric:.4g}"
    size_text = "\u2013" if not size else f"{size / 1e6:.2f} MB"
    words = zip((640, 710, 780, 850), (*speeds, metric_text, size_text), strict=True)
    return "".join(_text(x, y, one) for x, one in words)


def _legend(result: Result) -> str:
    environment = result.environment
    return (
        f"input {environment.get('measured_input', '')}, {environment.get('threads')} thread(s), "
        f"{environment.get('device_name', '')}; \u2713 is the chosen run"
    )


def _text(x: float, y: float, words: str, *, colour: str = INK, size: int = 13, weight: str = "normal") -> str:
    shown = escape(visible(words))
    return f'<text x="{x:.1f}" y="{y}" fill="{colour}" font-size="{size}" font-weight="{weight}">{shown}</text>'


def _shorten(words: str, most: int) -> str:
    words = visible(words)
    return words if len(words) <= most else words[: most - 1] + "\u2026"
