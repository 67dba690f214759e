"""The columns of the comparison of targets."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from ace_studio.gui.style import Colours, number, told, tr
from ace_studio.gui.widgets.table_model import Column
from ace_studio.gui.words.formatting import (
    NOTHING,
    RatioText,
    Unit,
    bytes_text,
    decibel_text,
    float_speedup_text,
    metric_text,
    percent_text,
    plural,
    ratio_text,
    speedup_text,
    unclear_words,
)
from ace_studio.gui.words.problems import not_run_words, problem_text
from ace_studio.records.results import Baseline, RunStatus, SearchStep, TargetRun, Warning
from ace_studio.records.results.on_devices import device_names, figure_on, speedup_on, state_words
from ace_studio.session.comparison.figures import ComparedRow, Difference
from ace_studio.session.document import Document
from ace_studio.session.run_stages import stage_words
from ace_studio.session.run_warnings import run_warnings


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """One row: the baseline or a run."""

    run: TargetRun
    index: int | None
    """Of the run in the document; None for the baseline."""
    partner: int | None = None
    """While A and B are compared: the run of A beside it."""
    plan: str
    is_chosen: bool = False
    warnings: tuple[Warning, ...] = ()
    stage: str = ""
    """What is being done with it now; empty if nothing is."""


def result_rows(document: Document, *, is_grouped: bool = False, hides_dropped: bool = False) -> list[ResultRow]:
    """The baseline if there is one, then the runs: as they ran, or those of a target together."""
    if document.comparison is not None:
        return _compared_rows(document)
    result = document.result
    stages = stage_words(document)
    steps = {} if result is None else {step.run: step for step in result.search if step.run is not None}
    rows = [
        ResultRow(
            run=run,
            index=at,
            plan=plan_words(run, steps.get(at)),
            is_chosen=result is not None and at == result.chosen,
            warnings=run_warnings(document, run),
            stage=stages[at],
        )
        for at, run in enumerate(document.runs)
        if not (hides_dropped and run.status is RunStatus.DROPPED)
    ]
    if is_grouped:
        targets = list(dict.fromkeys(row.run.target for row in rows))
        rows.sort(key=lambda row: targets.index(row.run.target))
    if document.baseline is not None:
        rows.insert(0, ResultRow(run=_of_baseline(document.baseline), index=None, plan=tr("as it is")))
    return rows


def _compared_rows(document: Document) -> list[ResultRow]:
    """A row for each row of the comparison: the run of B, or of A where B has none."""
    found = document.comparison.rows if document.comparison else ()
    indices = [row.runs[0] if row.runs[1] is None else row.runs[1] for row in found]
    nothing = TargetRun(target="", status=RunStatus.OK)
    return [
        ResultRow(run=nothing if at is None else document.runs[at], index=at, partner=row.runs[0], plan="")
        for row, at in zip(found, indices, strict=True)
    ]


def plan_words(run: TargetRun, step: SearchStep | None) -> str:
    """The plan in the words that tell it from the other plans: ``int8-static, 3 ops at fp32, smoothquant``."""
    kept = {"", run.precision, run.built_precision}
    planned = Counter({name: count for name, count in run.planned_precisions.items() if name not in kept})
    parts = [
        run.built_words,
        *(
            tr("{ops} at {precision}", ops=plural(count, "op"), precision=name)
            for name, count in planned.most_common(2)
        ),
    ]
    if step is not None:
        if step.kept_high and not run.ops:
            parts.append(
                tr(
                    "{kept} of {ops} at {precision}",
                    kept=step.kept_high,
                    ops=plural(step.of, "op"),
                    precision=step.high,
                )
            )
        parts += step.improved
    return ", ".join(part for part in parts if part) or NOTHING


def result_columns(rows: Sequence[ResultRow], *, colours: Colours, where: Mapping[str, object] = {}) -> list[Column]:
    """The columns, each with its definition and where its figures come from. ``where``: the result's environment."""
    runs = [row.run for row in rows]
    fp32_tip = tr(
        "Latency of the fp32 run in the same runtime over this one, in the same rounds, with the 95 % interval: "
        "what compression gained without what the runtime gained"
    )
    unit = Unit.of(run.latency_ms.p50 if run.latency_ms else None for run in runs)

    def dim_lost(at: int) -> str:
        return colours.text_dim if runs[at].status is not RunStatus.OK else ""

    def mood(at: int) -> str:
        return colours.bad if runs[at].status is RunStatus.FAILED else colours.warn if notes[at] else dim_lost(at)

    def why(at: int) -> str:
        error = runs[at].error
        words = [problem_text(error)] if error else [not_run_words(runs[at])] if runs[at].not_run else []
        return "\n".join([*words, *(told(warning.what) for warning in rows[at].warnings)])

    def measured(at: int) -> str:
        if (latency := runs[at].latency_ms) is None or not where:
            return ""
        sizes, threads = where.get("measured_input", ""), where.get("threads", "")
        return tr("input {sizes}, threads: {threads}, rounds: {rounds}", sizes=sizes, threads=threads, rounds=latency.n)

    notes = [bool(_warned(row) or row.run.not_run) for row in rows]
    p50, p10, p90 = (
        [getattr(run.latency_ms, name) if run.latency_ms else None for run in runs] for name in ("p50", "p10", "p90")
    )
    spreads = [f"{unit.text(low)} – {unit.text(high)}" if low else NOTHING for low, high in zip(p10, p90, strict=True)]
    return [
        Column(title="", values=["★" if row.is_chosen else "" for row in rows],
               tip="★ the best that meets the goal", colour=lambda _: colours.accent),
        Column(title="target", values=[run.target for run in runs], colour=dim_lost, tips=why,
               tip="The runtime that the model was built for"),
        Column(title="plan", values=[row.plan for row in rows], colour=dim_lost,
               tip="The precision of most ops, then what differs: ops at another precision, and better weights"),
        Column(title="status", values=[_status(row) for row in rows], colour=mood, tips=why,
               tip="How the run ended, and how many warnings it has; the tooltip of a cell says which"),
        Column(title=tr("latency, {unit}", unit=unit.name), values=[time and time * unit.factor for time in p50],
               text=unit.number, is_number=True,
               tips=measured,
               tip="Median time of one call over the rounds, all runs in turn. Measured in this process"),
        _ratio_column([(run.speedup, speedup_text(run)) for run in runs], colours, title=tr("speed-up (95 %)"),
                      tip=tr("Latency of the original over this one: medians over the rounds that nothing disturbed")),
        _ratio_column([(run.float_speedup, float_speedup_text(run)) for run in runs], colours,
                      title=tr("vs fp32 (95 %)"), tip=fp32_tip),
        Column(title="metric", values=[run.metric for run in runs], text=metric_text, is_number=True,
               tip="What your evaluation returns, or the built-in metric, on the evaluation data",
               tips=lambda at: _interval(runs[at].metric_low, runs[at].metric_high, metric_text)),
        Column(title="drop", values=[run.metric_drop for run in runs], text=percent_text, is_number=True,
               tips=lambda at: _interval(runs[at].drop_low, runs[at].drop_high, percent_text),
               tip="Loss of the metric relative to the original; negative is a gain. The tooltip of a cell has the "
                   "95 % interval, if known"),
        Column(title="SQNR", values=[run.fidelity for run in runs], text=decibel_text, is_number=True,
               tip="Energy of the original's outputs over the energy of their error, in decibels. From your examples"),
        Column(title="size", values=[run.size_bytes for run in runs], text=bytes_text, is_number=True,
               tip="Bytes of the saved artifact; of the original, of its weights"),
        Column(title=f"p10 – p90, {unit.name}", values=spreads, is_number=True, order=_numbers(p90),
               colour=lambda _: colours.text_dim, tip="Four of five rounds lie between these. Same rounds"),
        *_where_known(tr("memory"), [run.peak_memory_bytes for run in runs], bytes_text,
                      tr("Peak growth of memory in a fresh process that loads and runs the artifact")),
        *_where_known(tr("call overhead"), [run.overhead_us for run in runs],
                      lambda taken: NOTHING if taken is None else f"{number(taken, '.1f')} µs",
                      tr("Time of one call of result.module beyond that of its runtime alone")),
        *_where_known("tokens/s", [run.tokens_per_s for run in runs],
                      lambda rate: number(rate, ".1f") if rate else NOTHING,
                      tr("Measured by decoding step by step")),
        *(each for name in device_names(runs) for each in _device_columns(runs, name, colours)),
        Column(title="verified", values=[tr("yes") if run.verified else NOTHING for run in runs],
               tip="Reloaded in a fresh process and compared with the original, also at an unseen size",
               tips=lambda at: tr("The target computes the same function: compared on {count} inputs",
                                  count=runs[at].probes) if runs[at].same_function else ""),
    ]  # fmt: skip


def _device_columns(runs: Sequence[TargetRun], name: str, colours: Colours) -> list[Column]:
    """The latency on a device, and the speed-up among the runs that were measured there in the same rounds."""
    figures = [figure_on(run, name) for run in runs]
    ratios = [speedup_on(runs, at, name) for at in range(len(runs))]
    unit = Unit.of(figure.latency_ms.p50 if figure else None for figure in figures)

    def how(at: int) -> str:
        figure = figures[at]
        interval = "" if figure is None else f"95 %: {unit.text(figure.low)} – {unit.text(figure.high)}\n"
        return "" if figure is None else interval + state_words(figure)

    return [
        Column(title=tr("{device}: latency, {unit}", device=name, unit=unit.name), text=unit.number, is_number=True,
               values=[figure and figure.latency_ms.p50 * unit.factor for figure in figures], tips=how,
               colour=lambda at: colours.warn if (one := figures[at]) and one.note else "",
               tip=tr("Median on this device of your list. Comparable with nothing but this column")),
        Column(title=tr("{device}: speed-up", device=name), values=ratios, is_number=True, text=ratio_text,
               tip=tr("Over the fp32 run of the same target, else any fp32 run, on this device in the same rounds")),
    ]  # fmt: skip


def _ratio_column(found: list[tuple[float | None, RatioText]], colours: Colours, *, title: str, tip: str) -> Column:
    """A column of speed-ups; one that is not clear is dim."""

    def colour(at: int) -> str:
        ratio, text = found[at]
        return colours.text_dim if ratio is None or not text.is_clear else colours.good if ratio > 1 else colours.bad

    return Column(title=title, values=[f"{one.text}  {one.interval}" if one.is_clear else one.text for _, one in found],
                  colour=colour, order=_numbers([ratio for ratio, _ in found]), tips=lambda at: found[at][1].interval,
                  tip=tip)  # fmt: skip


def _where_known(title: str, values: list[Any], text: Callable[[Any], str], tip: str) -> list[Column]:
    """A column that appears only if some run has a value."""
    if all(value is None for value in values):
        return []
    return [Column(title=title, values=values, text=text, is_number=True, tip=tip)]


def _interval(low: float | None, high: float | None, text: Callable[[float], str]) -> str:
    """The 95 % interval in words; empty if it is not known."""
    if low is None or high is None:
        return ""
    seen = tr("; around 0: no difference was seen") if low <= 0 <= high and text is percent_text else ""
    return f"95 %: {text(low)} – {text(high)}{seen}"


def _of_baseline(baseline: Baseline) -> TargetRun:
    shared = {name: getattr(baseline, name) for name in ("latency_ms", "metric", "metric_low", "metric_high")}
    run = TargetRun(target=baseline.name, status=RunStatus.OK, precision="", **shared)
    return replace(run, tokens_per_s=baseline.tokens_per_s, size_bytes=baseline.size_bytes or None)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _status(row: ResultRow) -> str:
    run = row.run
    if row.index is None:
        return tr("baseline")
    if row.stage:
        return row.stage
    words = tr(run.status.value if run.status is not RunStatus.OK or run.latency_ms else "built")
    if run.not_run and run.status is RunStatus.OK:
        words = tr("not run")
    warned = _warned(row)
    return f"{words}, {plural(warned, 'warning')}" if warned else words


def _warned(row: ResultRow) -> int:
    """How many warnings a row has; why a run was dropped is none."""
    return sum(warning not in row.run.warnings for warning in row.warnings)


def figure_columns(rows: Sequence[ComparedRow], colours: Colours) -> list[Column]:
    """A row per target and precision: A, B and the change of every figure."""
    unit = Unit.of(time for each in rows for time in (each.latency.first, each.latency.second))
    columns = [Column(title="run", values=[each.name for each in rows])]

    for title, read, text, change, better, tip in (
        (tr("latency, {unit}", unit=unit.name), lambda each: each.latency, unit.text, _ratio, -1,
         tr("Median. B over A, with the bootstrap interval of the ratio, widened by what the original changed")),
        (tr("speed-up"), lambda each: each.speedup, ratio_text, _ratio, 1,
         tr("B over A. Each is over the original in its own run, so that a slower machine matters less")),
        (tr("vs fp32"), lambda each: each.float_speedup, ratio_text, _ratio, 1,
         tr("B over A. Each is over fp32 in the same runtime in its own run")),
        (tr("metric"), lambda each: each.metric, metric_text, lambda found: _delta(found, ".4f"), 0,
         tr("B minus A. The interval takes both intervals together")),
        ("SQNR", lambda each: each.sqnr, decibel_text, lambda found: _delta(found, ".1f"), 0, tr("B minus A, in dB")),
        (tr("size"), lambda each: each.size, bytes_text, _ratio, -1, tr("B over A")),
    ):  # fmt: skip
        found = [read(each) for each in rows]
        columns += [
            Column(title=f"A: {title}", values=[one.first for one in found], text=text, is_number=True),
            Column(title="B", values=[one.second for one in found], text=text, is_number=True),
            Column(title="change", values=[change(one) for one in found], tip=tip, tips=_tips(found),
                   colour=_mood(found, colours, better=better)),
        ]  # fmt: skip
    return columns


def _tips(found: Sequence[Difference]) -> Callable[[int], str]:
    def tip(at: int) -> str:
        one = found[at]
        if one.low is None or one.high is None:
            return tr("No interval is known") if one.change is not None else ""
        seen = "" if one.is_clear else tr("; within the noise")
        return f"95 %: {number(one.low, '.3g')} – {number(one.high, '.3g')}{seen}"

    return tip


def _mood(found: Sequence[Difference], colours: Colours, *, better: int) -> Callable[[int], str]:
    def colour(at: int) -> str:
        one = found[at]
        if one.change is None or not one.is_clear:
            return colours.text_dim
        if not better:
            return colours.text
        return colours.good if (one.change > 1) == (better > 0) else colours.bad

    return colour


def _ratio(found: Difference) -> str:
    if found.change is None:
        return NOTHING
    words = ratio_text(found.change)
    interval = (
        f"  {number(found.low, '.2f')} – {number(found.high, '.2f')}"
        if found.low is not None and found.high is not None
        else ""
    )
    return f"{words}{interval}{'' if found.is_clear else f', {unclear_words(found)}'}"


def _delta(found: Difference, form: str) -> str:
    if found.change is None:
        return NOTHING
    return f"{found.change:+{form}}" if found.is_clear else unclear_words(found)
