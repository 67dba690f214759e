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
from ace_studio.records.results.words import drop_words, measured_words, megabytes, metric_words, ratio_words
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
    environment.filters.update(metric=metric_words, drop=drop_words, devices=device_section)
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result, took=time_words(result), picture=picture, name=table.name if table else "model"
    )


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _part(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


BAR, OVERSHOOT = 330, 30
"""Width of the longest bar, and how far the line of its spread may reach beyond, in pixels."""


def comparison_svg(result: Result) -> str:
    """An SVG of the baseline and every run. Widths are milliseconds on one scale that starts at zero.

    The medians set the scale: on a busy machine one p90 can be ten times any median and would flatten every bar. A
    spread that is longer than the picture ends in an arrow.
    """
    baseline, environment = result.baseline or Baseline(), result.environment
    measured = (baseline.latency_ms, *(run.latency_ms for run in result.runs))
    template = page_environment(Path(__file__).parent).get_template("comparison.svg.j2")
    return template.render(
        baseline=baseline,
        rows=[_row(run, is_chosen=index == result.chosen) for index, run in enumerate(result.runs)],
        scale=BAR / max([*(one.p50 for one in measured if one), 1e-9]),
        longest_bar=BAR,
        overshoot=OVERSHOOT,
        legend=f"{measured_words(result)}, {environment.get('device_name', '')}; \u2713 is the chosen run",
    )


def _row(run: TargetRun, *, is_chosen: bool) -> dict[str, object]:
    """What the picture says of a run: of one without figures, why it has none."""
    label = f"{run.target} {run.built_precision}" + (" \u2713" if is_chosen else "")
    if run.status is not RunStatus.OK or run.latency_ms is None:
        why = run.error.what if run.error else run.not_run or next((one.what for one in run.warnings), str(run.status))
        return {"label": label, "why": _shorten(why, 100), "has_failed": run.status is RunStatus.FAILED}
    speeds = [ratio_words(run, name).partition(" (")[0] for name in ("speedup", "float_speedup")]
    note = run.built_words.partition(" (")[2].removesuffix(")")
    return {"label": label, "run": run, "is_chosen": is_chosen, "speeds": speeds, "note": note}


def _shorten(words: str, most: int) -> str:
    words = visible(words)
    return words if len(words) <= most else words[: most - 1] + "\u2026"
