"""What the command line shows to people: tables and problems with rich, on stdout and stderr."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import rich.box
import rich.console
import rich.markup
import rich.table
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from ace_studio.records.errors import Problem
from ace_studio.records.messages import EnvironmentReport, FileReport, LogLine, Progress
from ace_studio.records.results import (
    Baseline,
    CaptureReport,
    Latency,
    Result,
    RunStatus,
    SupportStatus,
    TargetRun,
    TargetSupport,
)
from ace_studio.records.tensors import DimFinding, DimVerdict

FILE_WIDTH = 190
PULSE_LINE_S = 30.0
"""Seconds between lines of a log that say only that something goes on."""


class Console:
    """Where words go: answers to stdout, progress and problems to stderr; only JSON on stdout if that was asked for."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = rich.console.Console(file=sys.stdout, highlight=False, width=_table_width(sys.stdout))
        self._err = rich.console.Console(file=sys.stderr, highlight=False)
        self._bar: ProgressBar | None = None
        self._task: Any = None
        self._last_phase = ""
        self._last_pulse_s = time.monotonic()

    def print(self, renderable: Any) -> None:
        """Part of the answer."""
        self._out.print(renderable)

    def print_json(self, document: Any) -> None:
        """The whole answer as one JSON document."""
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def say(self, words: str) -> None:
        """A remark on the way, on stderr."""
        self._err.print(rich.markup.escape(words), soft_wrap=True)

    def log(self, line: LogLine) -> None:
        """A line that the user's code printed, on stderr."""
        self._err.print(f"[dim]{rich.markup.escape(line.text)}[/dim]", soft_wrap=True)

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show a progress bar on a terminal, and a line per phase elsewhere."""
        if not self._err.is_terminal:
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        with ProgressBar(*columns, console=self._err, transient=True) as bar:
            self._bar, self._task = bar, bar.add_task("Starting", total=None)
            yield
            self._bar = None

    def show_progress(self, event: Progress) -> None:
        """Show where the job is."""
        words = f"{event.phase}: {event.detail}" if event.detail else str(event.phase)
        if self._bar is not None:
            total = None if event.fraction is None else 1.0
            self._bar.update(
                self._task, description=rich.markup.escape(words), total=total, completed=event.fraction or 0.0
            )
        elif event.fraction is None and words != self._last_phase and self._is_due(event):
            self._last_phase = words
            self.say(words)

    def _is_due(self, event: Progress) -> bool:
        """Whether a log has room for it: of what comes once a second, one line in half a minute."""
        now_s = time.monotonic()
        if event.is_pulse and now_s - self._last_pulse_s < PULSE_LINE_S:
            return False
        self._last_pulse_s = now_s
        return True


def _table_width(stream: TextIO) -> int | None:
    """Columns for tables: the terminal's own, and enough for every table where the output goes to a file."""
    return None if stream.isatty() else FILE_WIDTH


def show_problems(problems: tuple[Problem, ...], console: Console) -> None:
    """Every problem as what / why / remedy / where, on stderr."""
    for problem in problems:
        console.say(f"error: {problem.as_text()}")


def show_file(report: FileReport, console: Console) -> None:
    """What a file is."""
    console.print(
        f"{rich.markup.escape(report.path)}\n  {report.label}, {_size(report.size_bytes)}, trust: {report.trust}"
    )
    console.print(f"  sha256 {report.sha256}")
    for words in (*report.would_run, *report.notes):
        console.print(f"  {rich.markup.escape(words)}")
    if report.entries:
        table = _table("callable", "kind", "line", "summary")
        for entry in report.entries:
            table.add_row(rich.markup.escape(entry.name + entry.signature), entry.kind, str(entry.line), entry.summary)
        console.print(table)
    if report.tensors:
        table = _table("tensor", "type", "shape")
        for tensor in report.tensors[:200]:
            table.add_row(rich.markup.escape(tensor.name), tensor.dtype, "x".join(map(str, tensor.shape)) or "scalar")
        console.print(table)


def show_environment(report: EnvironmentReport, console: Console) -> None:
    """What ``doctor`` found."""
    console.print(f"Python {report.python} at {rich.markup.escape(report.executable)}")
    console.print(f"{report.platform}\n{report.cpu}, {report.cores} cores, {report.memory_bytes / 2**30:.1f} GiB")
    packages = _table("package", "version")
    for name, version in report.versions.items():
        packages.add_row(name, version)
    console.print(packages)
    devices = _table("device", "name", "available")
    for device in report.devices:
        devices.add_row(device.name, device.label, "yes" if device.available else f"no: {device.reason}")
    console.print(devices)
    targets = _table("target", "available", "precisions", "install")
    for target in report.targets:
        able = ", ".join(word for word, problem in target.precisions.items() if not problem) if target.available else ""
        targets.add_row(
            target.name, "yes" if target.available else f"no: {target.reason}", able, rich.markup.escape(target.install)
        )
    console.print(targets)
    for note in report.notes:
        console.print(f"note: {rich.markup.escape(note)}")


def captured_words(report: CaptureReport) -> str:
    """How many ops, by which rung, how long it took, and whether that was before."""
    cached = ", found in the cache and compared with eager again" if report.cached else ""
    held = [subgraph for subgraph in report.pieces if subgraph.error is None]
    parts = f" in {len(held)} subgraphs, {report.ops_left_eager} ops left eager," if report.pieces else ""
    return f"Captured {report.ops} ops{parts} with {report.rung} in {report.seconds:.1f} s{cached}"


def show_capture(report: CaptureReport, console: Console) -> None:
    """How the model was captured, with the verdict on every dimension."""
    console.print(captured_words(report))
    rungs = _table("rung", "status", "seconds", "ops", "why")
    for outcome in report.rungs:
        why = outcome.error.what if outcome.error else ""
        rungs.add_row(
            outcome.name, str(outcome.status), f"{outcome.seconds:.1f}", str(outcome.ops or ""), rich.markup.escape(why)
        )
    console.print(rungs)
    dims = _table("input", "type", "dimension", "verdict", "run and equal to eager at")
    for found in report.inputs:
        for dim in found.dims:
            sizes = ", ".join(map(str, dim.verified_sizes))
            dims.add_row(found.name, found.dtype, str(dim.index), _verdict(dim), sizes)
    console.print(dims)
    _show_subgraphs(report, console)
    _show_support(report.support, console)
    for warning in report.warnings:
        console.say(f"warning: {warning.what}" + (f" ({warning.where})" if warning.where else ""))


def _show_subgraphs(report: CaptureReport, console: Console) -> None:
    """The subgraphs and the breaks of a partial capture; nothing for a whole graph."""
    if not report.pieces:
        return
    subgraphs = _table("piece", "kind", "module", "ops", "calls", "why it stays eager")
    for subgraph in report.pieces:
        why = rich.markup.escape(f"{subgraph.error.what}: {subgraph.error.why}") if subgraph.error else ""
        subgraphs.add_row(
            subgraph.name, str(subgraph.kind), subgraph.module, str(subgraph.ops or ""), str(subgraph.calls), why
        )
    console.print(subgraphs)
    breaks = _table("break", "line", "why", "times", "ops left eager", "what may help")
    for number, one in enumerate(report.graph_breaks, start=1):
        line = rich.markup.escape(f"{Path(one.file).name}:{one.line}  {one.code}")
        hint = rich.markup.escape(one.hint)
        breaks.add_row(str(number), line, rich.markup.escape(one.reason), str(one.count), str(one.ops_left_eager), hint)
    if breaks.row_count:
        console.print(breaks)


SUPPORT_ROWS = 12
"""Operators per target that the table shows; the JSON has all."""


def _show_support(support: tuple[TargetSupport, ...], console: Console) -> None:
    """Per target the operators that it does not take as they are, the worst first; nothing if there are none."""
    table = _table("target", "op", "ops", "how", "what happens instead")
    for one in support:
        groups = Counter((op.status, op.op, op.instead) for op in one.ops)
        worst_first = sorted(groups, key=lambda group: (-_SEVERITY.index(group[0]), group[1]))
        for status, op, instead in worst_first[:SUPPORT_ROWS]:
            shown = rich.markup.escape(instead)
            table.add_row(one.target, op, str(groups[status, op, instead]), str(status), shown)
        if len(groups) > SUPPORT_ROWS:
            table.add_row(one.target, f"{len(groups) - SUPPORT_ROWS} more, see --json", "", "", "")
    if table.row_count:
        console.print(table)


_SEVERITY = tuple(SupportStatus)


def show_result(result: Result, folder: Path, console: Console) -> None:
    """The comparison of the baseline and every run."""
    table = _table(
        "target", "precision", "p50 ms", "p10 - p90", "speed-up", "metric", "drop", "SQNR dB", "size", "verified"
    )
    if result.baseline is not None:
        base = result.baseline
        table.add_row(
            base.name.removesuffix(" fp32"),
            "fp32 (baseline)",
            *_latency(base.latency_ms),
            "1.00x",
            _metric(base),
            "",
            "",
            _size(base.size_bytes),
            "",
        )
    slower = {step.run for step in result.search if step.status is RunStatus.DROPPED}
    for index, run in enumerate(result.runs):
        _add_run(table, run, is_chosen=index == result.chosen, lost_race=index in slower)
    console.print(table)
    _show_decoding(result, console)
    for run in result.runs:
        if run.error is not None:
            why = rich.markup.escape(f"{run.error.what} ({run.error.why})")
            console.print(f"{run.target} {run.precision}: {why}")
    for run in result.runs:
        if run.agreement is not None and run.agreement < 1.0:
            console.print(
                f"{run.target} {run.precision}: {run.agreement:.1%} of the indices, labels and truth values that it "
                "gives are the original's"
            )
    show_changes(result, console)
    show_search(result, console)
    show_improvements(result, console)
    for warning in result.warnings:
        console.say(f"warning: {warning.what}")
    if result.chosen is not None:
        run = result.runs[result.chosen]
        goal = "" if result.goal_met is None else ", which meets the goal" if result.goal_met else ", the best found"
        console.print(f"Chosen: {run.target} {run.precision}{goal}")
    show_advice(result, console)
    console.print(rich.markup.escape(f"Written to {folder}: result.json, report.html, comparison.svg, artifacts/"))


def show_changes(result: Result, console: Console) -> None:
    """What pruning and fine-tuning made of the model before anything was built."""
    if (pruned := result.pruning) is not None:
        fidelity = "" if pruned.sqnr_db is None else f", {pruned.sqnr_db:.1f} dB before anything else"
        console.print(
            f"Pruned ({pruned.method}): {pruned.parameters_after / max(1, pruned.parameters_before):.0%} of the "
            f"weights and {pruned.macs_after / max(1, pruned.macs_before):.0%} of the arithmetic are left{fidelity}"
        )
    if (tuned := result.finetune) is not None:
        word = "kept" if tuned.kept else "not kept"
        console.print(rich.markup.escape(f"Fine-tuned ({tuned.method}), {word}: {tuned.reason}"))


def show_search(result: Result, console: Console) -> None:
    """How many plans the search evaluated, and which ops the chosen one keeps high."""
    if not result.search:
        return
    places = ", ".join(dict.fromkeys(step.target for step in result.search))
    reused = sum(step.reused for step in result.search)
    known = f", {reused} of them known from an earlier run" if reused else ""
    console.print(f"Search: {len(result.search)} plans on {places}{known}")
    chosen = next((step for step in result.search if step.run is not None and step.run == result.chosen), None)
    if chosen is not None and chosen.improved:
        console.print(f"Weights improved by the search: {', '.join(chosen.improved)}")
    if chosen is not None and chosen.kept_high:
        ops = ", ".join(rule.match.removeprefix("id:") for rule in chosen.rules[:8])
        more = f" and {chosen.kept_high - 8} more" if chosen.kept_high > 8 else ""
        console.print(rich.markup.escape(f"Kept at {chosen.high}: {chosen.kept_high} of {chosen.of} ops: {ops}{more}"))


def show_improvements(result: Result, console: Console) -> None:
    """A line for every method of improvement: what it gave and whether it was kept. What is the same is said once."""
    said = []
    for one in result.improvements:
        gain = "" if one.after_db is None else f"{one.before_db:.1f} to {one.after_db:.1f} dB, "
        word = "kept" if one.kept else "left"
        said.append(rich.markup.escape(f"{one.method} at {one.precision}: {gain}{word}: {one.reason}"))
    for line in dict.fromkeys(said):
        console.print(line)


def show_advice(result: Result, console: Console) -> None:
    """What came of the card that the run was made from, and the cards for the next one."""
    if result.advice_from is not None:
        console.print(rich.markup.escape(f"Advice that was followed: {result.advice_from.title}"))
        console.print(rich.markup.escape(f"  {result.advice_from.verdict}"))
    for number, card in enumerate(result.advice, start=1):
        lines = [f"Advice {number}: {card.title}", f"  why: {card.why}", f"  gain: {card.estimate}"]
        lines += [f"  first: {card.do_first}"] if card.do_first else []
        lines += [f"  changes: {_changes(card.change)}"] if card.change else []
        for line in lines:
            console.print(rich.markup.escape(line))
    if not result.advice and result.chosen is not None:
        console.print("No advice: nothing is known that should do better.")


def _changes(change: dict[str, dict[str, object]]) -> str:
    """``[plan] default = "bf16"``, as a recipe says it."""
    return "; ".join(
        f"[{table}] {key} = {json.dumps(value)}" for table, values in change.items() for key, value in values.items()
    )


def _show_decoding(result: Result, console: Console) -> None:
    """Tokens a second, where the model is one step of a decoder."""
    baseline = result.baseline
    if baseline is None or baseline.decode is None:
        return
    table = _table("decoding", "precision", "tokens/s", "slowest - fastest", "tokens as the original's")
    rows = [(baseline.name, "fp32 (baseline)", baseline.decode)]
    rows += [(run.target, run.precision, run.decode) for run in result.runs if run.decode is not None]
    for name, precision, one in rows:
        spread = f"{one.tokens_per_s_low:.1f} - {one.tokens_per_s_high:.1f}"
        table.add_row(name, precision, f"{one.tokens_per_s:.1f}", spread, f"{one.same_tokens:.0%} of {one.tokens}")
    console.print(table)


def _add_run(table: rich.table.Table, run: TargetRun, *, is_chosen: bool, lost_race: bool) -> None:
    name = f"[bold]{run.target} *[/bold]" if is_chosen else run.target
    if run.status is RunStatus.DROPPED and run.latency_ms is not None:
        why = "dropped: clearly slower" if lost_race else "a step of the search"
        sqnr = "" if run.sqnr_db is None else f"{run.sqnr_db:.1f}"
        size = _size(run.size_bytes) if run.size_bytes else ""
        table.add_row(name, run.precision, *_latency(run.latency_ms), why, _metric(run), _drop(run), sqnr, size)
        return
    if run.status is not RunStatus.OK or run.latency_ms is None:
        table.add_row(name, run.precision, str(run.status))
        return
    speed = ""
    if run.speedup is not None:
        speed = f"{run.speedup:.2f}x ({run.speedup_low:.2f} - {run.speedup_high:.2f})"
        if run.speedup_low is not None and run.speedup_high is not None and run.speedup_low <= 1 <= run.speedup_high:
            speed = f"no difference seen ({run.speedup_low:.2f} - {run.speedup_high:.2f})"
    sqnr = "" if run.sqnr_db is None else f"{run.sqnr_db:.1f}"
    table.add_row(
        name, run.precision, *_latency(run.latency_ms), speed, _metric(run), _drop(run), sqnr,
        _size(run.size_bytes), "yes" if run.verified else "no",
    )  # fmt: skip


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> rich.table.Table:
    """A table of plain texts."""
    table = _table(*columns)
    for row in rows:
        table.add_row(*(rich.markup.escape(cell) for cell in row))
    return table


def _table(*columns: str) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _latency(latency: Latency | None) -> tuple[str, str]:
    if latency is None:
        return "", ""
    return f"{latency.p50:.3f}", f"{latency.p10:.3f} - {latency.p90:.3f}"


def _metric(one: Baseline | TargetRun) -> str:
    """``0.9870 (0.9810 - 0.9920)``; without the interval where nothing is known of single samples."""
    if one.metric is None:
        return ""
    if one.metric_low is None or one.metric_high is None:
        return f"{one.metric:.4f}"
    return f"{one.metric:.4f} ({one.metric_low:.4f} - {one.metric_high:.4f})"


def _drop(run: TargetRun) -> str:
    """The drop with its interval; one that may be none at all is not called a drop."""
    if run.metric_drop is None:
        return ""
    if run.drop_low is None or run.drop_high is None:
        return f"{run.metric_drop:+.2%}"
    bounds = f"({run.drop_low:+.2%} to {run.drop_high:+.2%})"
    return f"no difference seen {bounds}" if run.drop_low <= 0 <= run.drop_high else f"{run.metric_drop:+.2%} {bounds}"


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f"{size_bytes / 1e6:.3f} MB"


def _verdict(dim: DimFinding) -> str:
    if dim.verdict is DimVerdict.DYNAMIC:
        high = "\u221e" if dim.max is None else str(dim.max)
        equal = f", equal to {dim.equal_to}" if dim.equal_to else ""
        return f"dynamic {dim.symbol or ''} in [{dim.min if dim.min is not None else 0}, {high}]{equal}"
    if dim.verdict is DimVerdict.UNKNOWN:
        return "only ever 1: cannot tell, add an example"
    return f"static {dim.size}"
