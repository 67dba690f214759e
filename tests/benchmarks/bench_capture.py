"""How much of the zoo is captured, how well, and how fast, beside torch's own tools used by hand.

    python -m tests.benchmarks.bench_capture --out FOLDER [--only NAME ...] [--rows N] [--jobs 2] [--limit 180]

Every row runs in a process of its own. FOLDER gets one JSON file per row, and ``table.md`` and ``summary.json``. With
``--keep`` rows that are there already are not run again. The exit status is 1 if a claim does not hold.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.benchmarks.bare_tools import TOOLS
from tests.benchmarks.capture_row import RowFound
from tests.benchmarks.children import run_child
from tests.benchmarks.zoo import ROWS, Row

MOST_RATIO = 1.15
FEWEST_ROWS = 60
TOGETHER_BEFORE = 43, 51
"""Architectures that any tool captured when the ladder was designed: of 51, eight went in subgraphs only."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of the issue, and whether the rows bear it out."""

    text: str
    holds: bool
    figures: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows say together."""

    rows: int
    whole: int
    partial: int
    neither: list[str]
    proven_by_tool: dict[str, int]
    proven_by_any_tool: int
    median_ratio: float | None
    median_trace_ratio: float | None
    median_cpu_ratio: float | None
    """Of process time, which does not depend on what else the machine does."""
    claims: list[Claim]


def run_row(row: Row, folder: Path, *, limit_s: float, row_limit_s: float, only_ours: bool) -> RowFound:
    """Measure one row in a process of its own, which is killed with its children after the limit."""
    file = folder / f"{row.name}.json"
    file.unlink(missing_ok=True)
    arguments = [row.name, "--out", str(file), "--limit", str(limit_s), *(["--ours"] if only_ours else [])]
    log = folder / f"{row.name}.log"
    ending = run_child("tests.benchmarks.capture_row", arguments, log=log, limit_s=row_limit_s)
    if not file.exists():
        found = RowFound(name=row.name, family=row.family)
    else:
        found = msgspec.json.decode(file.read_bytes(), type=RowFound)
    if ending and not found.error:
        found.error = ending
        file.write_bytes(msgspec.json.encode(found))
    return found


def run_rows(
    rows: Sequence[Row], folder: Path, measure: Callable[[Row], RowFound], *, jobs: int, keep: bool
) -> list[RowFound]:
    """Measure rows, some at a time, and print a line for each."""

    def one(row: Row) -> RowFound:
        file = folder / f"{row.name}.json"
        if keep and file.exists():
            return msgspec.json.decode(file.read_bytes(), type=RowFound)
        started = time.monotonic()
        found = measure(row)
        print(f"{row.name:24s} {time.monotonic() - started:6.0f} s  {in_words(found)}", flush=True)
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, rows))


def in_words(found: RowFound) -> str:
    """What became of a row in one line."""
    ours = found.ours
    if ours is None:
        return f"not measured: {found.error.strip().splitlines()[-1] if found.error else 'nothing'}"[:200]
    if ours.is_whole:
        ratio = "" if found.ratio is None else f", {found.ratio:.2f} times bare ({found.trace_ratio or 0:.2f} to trace)"
        return f"whole by {ours.rung}, {ours.ops} ops{ratio}"
    if ours.subgraphs:
        left = f", {ours.ops_left_eager} ops left eager, {len(ours.breaks)} breaks"
        left += f", not called: {', '.join(ours.idle_subgraphs)}" if ours.idle_subgraphs else ""
        left += f", {ours.missed_calls} calls at sizes that run eagerly" if ours.missed_calls else ""
        unequal = f"; unequal: {ours.unequal}" if ours.unequal else ""
        return f"{ours.captured_subgraphs} of {ours.subgraphs} subgraphs, {ours.ops} ops{left}{unequal}"
    if ours.rung:
        return f"{ours.rung} but {ours.unequal or 'dynamic at ' + ', '.join(ours.dynamic)}"
    return f"refused: {ours.error} ({ours.where})"


# --- what the rows say together ---


def summarize(found: Sequence[RowFound], *, is_complete: bool) -> Summary:
    """Counts and claims; those about the number of rows are made only of the complete zoo."""
    ran = [one for one in found if one.ours is not None]
    whole = [one for one in ran if one.ours is not None and one.ours.is_whole]
    rest = [one for one in found if one not in whole]
    partial = [one for one in rest if one.ours is not None and one.ours.is_partial]
    by_tool = {name: sum(one.bare[name].proven for one in ran if name in one.bare) for name in TOOLS}
    by_any = sum(any(tool.proven for tool in one.bare.values()) for one in ran)
    ratios = [one.ratio for one in whole if one.ratio is not None]
    traces = [one.trace_ratio for one in whole if one.trace_ratio is not None]
    cpu = [one.cpu_ratio for one in whole if one.cpu_ratio is not None]
    neither = [one.name for one in rest if one not in partial]
    claims = [_claim_rest(rest, neither), _claim_speed(ratios)]
    if is_complete:
        counts = len(whole), len(found)
        claims = [_claim_rows(len(ran)), _claim_single(*counts, by_tool), _claim_union(*counts, by_any), *claims]
    return Summary(
        rows=len(found),
        whole=len(whole),
        partial=len(partial),
        neither=neither,
        proven_by_tool=by_tool,
        proven_by_any_tool=by_any,
        median_ratio=statistics.median(ratios) if ratios else None,
        median_trace_ratio=statistics.median(traces) if traces else None,
        median_cpu_ratio=statistics.median(cpu) if cpu else None,
        claims=claims,
    )


def _claim_rows(count: int) -> Claim:
    return Claim(
        text=f"at least {FEWEST_ROWS} architectures were measured", holds=count >= FEWEST_ROWS, figures=f"{count}"
    )


def _claim_single(whole: int, rows: int, by_tool: dict[str, int]) -> Claim:
    tools = ", ".join(f"{name} {count}" for name, count in by_tool.items())
    return Claim(
        text="whole graphs proven dynamic on more rows than any single tool gives by hand",
        holds=whole > max(by_tool.values()),
        figures=f"ours {whole} of {rows}; by hand: {tools}",
    )


def _claim_union(whole: int, rows: int, by_any: int) -> Claim:
    before, of = TOGETHER_BEFORE
    return Claim(
        text="whole graphs proven dynamic on more rows than all tools together, here and when the ladder was designed",
        holds=whole > by_any and whole / rows > before / of,
        figures=f"ours {whole} of {rows}; by hand together {by_any}; at the design at most {before} of {of}",
    )


def _claim_rest(rest: Sequence[RowFound], neither: Iterable[str]) -> Claim:
    missing = list(neither)
    return Claim(
        text="every one of the rest runs partially, with a captured subgraph and results equal to eager",
        holds=not missing,
        figures=f"{len(rest) - len(missing)} of {len(rest)}" + (f"; not {', '.join(missing)}" if missing else ""),
    )


def _claim_speed(ratios: Sequence[float]) -> Claim:
    if not ratios:
        return Claim(text="capture takes no longer than bare export", holds=True, figures="nothing to compare")
    middle = statistics.median(ratios)
    ordered = sorted(ratios)
    spread = f"10 % below {ordered[len(ordered) // 10]:.2f}, 90 % below {ordered[len(ordered) * 9 // 10]:.2f}"
    return Claim(
        text=f"median seconds, proof and all, against bare torch.export at most {MOST_RATIO}",
        holds=middle <= MOST_RATIO,
        figures=f"{middle:.2f} over {len(ratios)} rows, {spread}",
    )


def table(found: Sequence[RowFound], summary: Summary) -> str:
    """Everything as markdown."""
    lines = ["# Capture of the zoo", ""]
    lines += [f"- {'holds' if one.holds else '**DOES NOT HOLD**'}: {one.text}: {one.figures}" for one in summary.claims]
    if summary.median_trace_ratio is not None and summary.median_cpu_ratio is not None:
        lines.append(f"- in process time the median is {summary.median_cpu_ratio:.2f}")
        lines.append(f"- the trace alone takes {summary.median_trace_ratio:.2f} of bare torch.export (median)")
    lines += [
        "",
        "By hand: `yes` captured, and equal at the unseen sizes; `wrong` captured only; `-` no graph.",
        "",
        f"| row | family | {' | '.join(TOOLS)} | ours | s, bare / ours |",
        "|---|---|" + "---|" * len(TOOLS) + "---|---|",
    ]
    for one in found:
        tools = [_cell(one, name) for name in TOOLS]
        seconds = f"{min(one.bare_s, default=0):.1f} / {min(one.ours_s, default=0):.1f}"
        words = in_words(one).replace("|", "/")
        lines.append(f"| {one.name} | {one.family} | {' | '.join(tools)} | {words} | {seconds} |")
    return "\n".join(lines) + "\n"


def _cell(found: RowFound, name: str) -> str:
    tool = found.bare.get(name)
    if tool is None:
        return ""
    return "yes" if tool.proven else "wrong" if tool.captured else "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=[])
    parser.add_argument("--rows", type=int, default=len(ROWS), help="the first N rows, quick ones first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one tool or one rung")
    parser.add_argument("--row-limit", type=float, default=600.0, help="seconds for one row")
    parser.add_argument("--keep", action="store_true", help="do not run rows again that are in the folder")
    parser.add_argument("--ours", action="store_true", help="leave the bare tools out")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = sorted(ROWS.values(), key=lambda row: row.cost)[: options.rows]
    if options.only:
        rows = [ROWS[name] for name in options.only]

    def measure(row: Row) -> RowFound:
        return run_row(row, options.out, limit_s=options.limit, row_limit_s=options.row_limit, only_ours=options.ours)

    found = run_rows(rows, options.out, measure, jobs=options.jobs, keep=options.keep)
    summary = summarize(found, is_complete=len(rows) == len(ROWS) and not options.ours)
    text = table(found, summary)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    (options.out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2))
    print(text)
    return 0 if all(claim.holds for claim in summary.claims) else 1


if __name__ == "__main__":
    sys.exit(main())
