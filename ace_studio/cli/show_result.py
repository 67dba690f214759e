"""How the command line shows a finished run: the comparison, the search, improvements and advice."""

from pathlib import Path

from ace_studio.cli.app import Console
from ace_studio.records.results import Latency, Result, RunStatus, TargetRun
from ace_studio.records.results.on_devices import device_names, figure_on, figure_words, state_words
from ace_studio.records.results.words import drop_words, measured_words, megabytes, metric_words, ms_words, ratio_words
from ace_studio.records.time_words import time_words

MOST_OPS_NAMED = 8


def show_result(result: Result, console: Console, folder: Path) -> None:
    """Show the comparison of the baseline and every run, and what was chosen."""
    rows: list[tuple[str, ...]] = []
    if (base := result.baseline) is not None:
        name = base.name.removesuffix(" fp32")
        size = megabytes(base.size_bytes)
        rows.append(
            (name, "fp32 (baseline)", *_latency(base.latency_ms), "1.00x", "", metric_words(base), "", "", size)
        )
    lost_race = {step.run for step in result.search if step.status is RunStatus.DROPPED}
    chosen_row = None if result.chosen is None else len(rows) + result.chosen
    for index, run in enumerate(result.runs):
        rows.append(_row(run, is_chosen=index == result.chosen, lost_race=index in lost_race))
    columns = ("target", "precision", "p50 ms", "p10 - p90", "speed-up", "vs fp32", "metric", "drop", "SQNR dB", "size")
    console.print_table((*columns, "verified"), rows, bold_row=chosen_row)
    if words := measured_words(result):
        console.print(f"Measured with {words}")
    _show_decoding(result, console)
    show_on_devices(result, console)
    _show_why_not(result, console)
    for run in result.runs:
        if run.overhead_us is not None:
            console.print(
                f"{run.target} {run.precision}: a call of result.module takes {run.overhead_us:.1f} us more than the "
                "runtime alone"
            )
        if run.agreement is not None and run.agreement < 1.0:
            console.print(
                f"{run.target} {run.precision}: {run.agreement:.1%} of the indices, labels and truth values in its "
                "outputs equal those of the original"
            )
    show_changes(result, console)
    show_search(result, console)
    show_improvements(result, console)
    for warning in result.warnings:
        console.warn(warning)
    if result.chosen is not None:
        run = result.runs[result.chosen]
        goal = "" if result.goal_met is None else ", which meets the goal" if result.goal_met else ", the best found"
        console.print(f"Chosen: {run.target} {run.built_words}{goal}")
    show_advice(result, console)
    _show_time(result, console)
    console.print(f"Written to {folder}: result.json, report.html, comparison.svg, artifacts/")


def _show_why_not(result: Result, console: Console) -> None:
    """Show why runs failed, and why one that was saved has no figures."""
    for run in result.runs:
        if run.error is not None:
            where = f", at {run.error.where}" if run.error.where else ""
            console.print(f"{run.target} {run.precision}: {run.error.what} ({run.error.why}){where}")
            if run.error.remedy:
                console.print(f"  remedy: {run.error.remedy}")
        elif run.not_run and run.artifact:
            console.print(f"{run.target} {run.precision}: saved, but not run, compared or timed: {run.not_run}")


def show_on_devices(result: Result, console: Console) -> None:
    """Show the latencies of the runs, a column for each device, and how the devices were meanwhile."""
    runs, names = result.runs, device_names(result.runs)
    rows = [
        (run.target, run.built_words, *(cell for name in names for cell in figure_words(runs, index, name)))
        for index, run in enumerate(runs)
        if run.devices
    ]
    columns = [column for name in names for column in (f"{name}: p50 ms", "speed-up there")]
    console.print_table(("target", "precision", *columns), rows)
    for name in names:
        told = (figure_on(run, name) for run in runs)
        for words in dict.fromkeys(state_words(figure) for figure in told if figure is not None):
            console.print(f"{name}: {words}")


def show_changes(result: Result, console: Console) -> None:
    """Show what pruning and fine-tuning did to the model before anything was built."""
    if (pruned := result.pruning) is not None:
        fidelity = "" if pruned.sqnr_db is None else f", {pruned.sqnr_db:.1f} dB before anything else"
        console.print(
            f"Pruned ({pruned.method}): {pruned.parameters_after / max(1, pruned.parameters_before):.0%} of the "
            f"weights and {pruned.macs_after / max(1, pruned.macs_before):.0%} of the arithmetic are left{fidelity}"
        )
    if (tuned := result.finetune) is not None:
        console.print(f"Fine-tuned ({tuned.method}), {'kept' if tuned.kept else 'not kept'}: {tuned.reason}")


def show_search(result: Result, console: Console) -> None:
    """Show how many plans the search evaluated, and which ops the chosen plan keeps at a higher precision."""
    if not result.search:
        return
    targets = ", ".join(dict.fromkeys(step.target for step in result.search))
    reused = sum(step.reused for step in result.search)
    known = f", {reused} of them known from an earlier run" if reused else ""
    console.print(f"Search: {len(result.search)} plans on {targets}{known}")
    chosen = next((step for step in result.search if step.run is not None and step.run == result.chosen), None)
    if chosen is not None and chosen.improved:
        console.print(f"Weights improved by the search: {', '.join(chosen.improved)}")
    if chosen is not None and chosen.kept_high:
        ops = ", ".join(rule.match.removeprefix("id:") for rule in chosen.rules[:MOST_OPS_NAMED])
        more = f" and {chosen.kept_high - MOST_OPS_NAMED} more" if chosen.kept_high > MOST_OPS_NAMED else ""
        console.print(f"Kept at {chosen.high}: {chosen.kept_high} of {chosen.of} ops: {ops}{more}")


def show_improvements(result: Result, console: Console) -> None:
    """Show for every method of improvement what it gained and whether it was kept; equal lines once."""
    lines = []
    for one in result.improvements:
        gain = "" if one.after_db is None else f"{one.before_db:.1f} to {one.after_db:.1f} dB, "
        lines.append(f"{one.method} at {one.precision}: {gain}{'kept' if one.kept else 'left'}: {one.reason}")
    for line in dict.fromkeys(lines):
        console.print(line)


def show_advice(result: Result, console: Console) -> None:
    """Show whether the advice that was followed held, and the cards for the next run."""
    if result.advice_from is not None:
        console.print(f"Advice that was followed: {result.advice_from.title}", f"  {result.advice_from.verdict}")
    for number, card in enumerate(result.advice, start=1):
        console.print(f"Advice {number}: {card.title}", f"  why: {card.why}", f"  gain: {card.estimate}")
        if card.do_first:
            console.print(f"  first: {card.do_first}")
        if card.change:
            console.print(f"  changes: {card.change_text}")
    if not result.advice and result.chosen is not None:
        console.print("No advice: nothing is known that should do better.")


def _show_time(result: Result, console: Console) -> None:
    if took := time_words(result):
        console.print(f"It took {took}")


def _show_decoding(result: Result, console: Console) -> None:
    """Show tokens per second, where the model is one step of a decoder."""
    baseline = result.baseline
    if baseline is None or baseline.decode is None:
        return
    reports = [(baseline.name, "fp32 (baseline)", baseline.decode)]
    reports += [(run.target, run.built_words, run.decode) for run in result.runs if run.decode is not None]
    console.print_table(
        ("decoding", "precision", "tokens/s", "slowest - fastest", "tokens as the original's"),
        [
            (
                name,
                precision,
                f"{one.tokens_per_s:.1f}",
                f"{one.tokens_per_s_low:.1f} - {one.tokens_per_s_high:.1f}",
                f"{one.same_tokens:.0%} of {one.tokens}",
            )
            for name, precision, one in reports
        ],
    )


def _row(run: TargetRun, *, is_chosen: bool, lost_race: bool) -> tuple[str, ...]:
    name = f"{run.target} *" if is_chosen else run.target
    if run.status not in {RunStatus.OK, RunStatus.DROPPED} or run.latency_ms is None:
        return (name, run.precision, "not run" if run.not_run and run.artifact else str(run.status))
    if run.status is RunStatus.OK:
        speed = ratio_words(run, "speedup")
        verified = "yes" if run.verified else "no"
    else:
        speed, verified = "dropped: clearly slower" if lost_race else "a step of the search", ""
    sqnr = "" if run.fidelity is None else f"{run.fidelity:.1f}"
    size = megabytes(run.size_bytes)
    latency = _latency(run.latency_ms)
    fp32 = "not measured" if run.lacks_float_time else ratio_words(run, "float_speedup")
    return (name, run.built_words, *latency, speed, fp32, metric_words(run), drop_words(run), sqnr, size, verified)


def _latency(latency: Latency | None) -> tuple[str, str]:
    found = latency and [ms_words(one) for one in (latency.p50, latency.p10, latency.p90)]
    return (found[0], f"{found[1]} - {found[2]}") if found else ("", "")
