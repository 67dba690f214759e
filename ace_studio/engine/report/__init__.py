"""The files of a result: ``result.json``, a picture of the comparison, and a report in one file."""

from __future__ import annotations

from pathlib import Path

import jinja2

from ace_studio.engine.report.picture import comparison_svg
from ace_studio.records import results
from ace_studio.records.graph import GraphTable
from ace_studio.records.safe_file import write_atomically


def write_report(result: results.Result, table: GraphTable | None, folder: Path) -> None:
    """Write the three files into ``folder``, each atomically, ``result.json`` last.

    The report is one file without scripts or links to the outside; every name in it is escaped.
    """
    picture = comparison_svg(result)
    write_atomically(folder / results.PICTURE_NAME, picture.encode())
    write_atomically(folder / results.REPORT_NAME, _report_html(result, table, picture).encode())
    write_atomically(folder / results.RESULT_NAME, results.encode_result(result))


def _report_html(result: results.Result, table: GraphTable | None, picture: str) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=_number, percent=_percent, megabytes=_megabytes, part=_part)
    environment.filters.update(metric=_metric, drop=_drop)
    template = environment.get_template("report.html.j2")
    return template.render(result=result, picture=picture, name=table.name if table else "model")


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _part(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2%}"


def _metric(one: results.Baseline | results.TargetRun) -> str:
    """The metric with its interval, if that is known."""
    if one.metric_low is None or one.metric_high is None:
        return _number(one.metric, 4)
    return f"{_number(one.metric, 4)} ({one.metric_low:.4f} – {one.metric_high:.4f})"


def _drop(run: results.TargetRun) -> str:
    """The drop with its paired interval; if that contains 0, no difference was seen."""
    if run.drop_low is None or run.drop_high is None:
        return _percent(run.metric_drop)
    bounds = f"({run.drop_low:+.2%} to {run.drop_high:+.2%})"
    is_nothing = run.drop_low <= 0 <= run.drop_high
    return f"no difference seen {bounds}" if is_nothing else f"{_percent(run.metric_drop)} {bounds}"


def _megabytes(value: int | None) -> str:
    return "–" if value is None else f"{value / 1e6:.3f} MB"
