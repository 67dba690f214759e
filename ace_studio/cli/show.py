"""How the command line shows a file, an environment and a capture to people."""

import shlex
from collections import Counter
from pathlib import Path

from ace_studio.cli.app import Console
from ace_studio.records.messages import EnvironmentReport, FileReport
from ace_studio.records.results import CaptureReport, SupportStatus, TargetSupport
from ace_studio.records.results.words import megabytes
from ace_studio.records.tensors import DimFinding, DimVerdict

MOST_TENSORS = 200
MOST_SUPPORT_ROWS = 12
"""Operators per target that the table shows; the JSON has all."""
_SEVERITY = tuple(SupportStatus)


def show_file(report: FileReport, console: Console) -> None:
    """Show what a file is."""
    console.print(report.path, f"  {report.label}, {megabytes(report.size_bytes)}, trust: {report.trust}")
    console.print(f"  sha256 {report.sha256}")
    for text in (*report.would_run, *report.notes):
        console.print(f"  {text}")
    console.print_table(
        ("callable", "kind", "line", "summary"),
        [(entry.name + entry.signature, entry.kind, entry.line, entry.summary) for entry in report.entries],
    )
    console.print_table(
        ("tensor", "type", "shape"),
        [
            (tensor.name, tensor.dtype, "x".join(map(str, tensor.shape)) or "scalar")
            for tensor in report.tensors[:MOST_TENSORS]
        ],
    )


def show_environment(report: EnvironmentReport, console: Console) -> None:
    """Show what ``doctor`` found."""
    console.print(f"Python {report.python} at {report.executable}")
    console.print(report.platform, f"{report.cpu}, {report.cores} cores, {report.memory_bytes / 2**30:.1f} GiB")
    console.print_table(("package", "version"), report.versions.items())
    console.print_table(
        ("device", "name", "available"),
        [(device.name, device.label, _yes_or(device.available, device.reason)) for device in report.devices],
    )
    targets = []
    for target in report.targets:
        able = ", ".join(word for word, problem in target.precisions.items() if not problem) if target.available else ""
        usable = _yes_or(target.available, target.reason)
        targets.append(
            (target.name, f"{usable}, to save: {target.not_run}" if able and target.not_run else usable, able)
        )
    console.print_table(("target", "available", "precisions"), targets)
    for target in report.targets:
        if target.install:
            line = target.install.replace("pip install", f"{shlex.quote(report.executable)} -m pip install")
            console.print_whole(f"what {target.name} lacks: {line}")
    console.print(f"containment: {report.containment}")
    for note in report.notes:
        console.print(f"note: {note}")


def _yes_or(available: bool, reason: str) -> str:
    return "yes" if available else f"no: {reason}"


def captured_words(report: CaptureReport) -> str:
    """How many ops were captured, by which capture method, in how many seconds, and whether from the cache."""
    cached = ", found in the cache and compared with eager again" if report.cached else ""
    captured = [subgraph for subgraph in report.pieces if subgraph.error is None]
    parts = f" in {len(captured)} subgraphs, {report.ops_left_eager} ops left eager," if report.pieces else ""
    return f"Captured {report.ops} ops{parts} with {report.rung} in {report.seconds:.1f} s{cached}"


def show_capture(report: CaptureReport, console: Console) -> None:
    """Show how the model was captured, with the verdict on every dimension."""
    console.print(captured_words(report))
    console.print_table(
        ("capture method", "status", "seconds", "ops", "why"),
        [
            (one.name, one.status, f"{one.seconds:.1f}", one.ops or "", one.error.what if one.error else one.reason)
            for one in report.rungs
        ],
    )
    console.print_table(
        ("input", "type", "dimension", "verdict", "run and equal to eager at"),
        [
            (found.name, found.dtype, dim.index, _verdict(dim), ", ".join(map(str, dim.verified_sizes)))
            for found in report.inputs
            for dim in found.dims
        ],
    )
    if report.pieces:
        _show_subgraphs(report, console)
    _show_support(report.support, console)
    for warning in report.warnings:
        console.warn(warning)


def _show_subgraphs(report: CaptureReport, console: Console) -> None:
    rows: list[tuple[object, ...]] = []
    for one in report.pieces:
        why = f"{one.error.what}: {one.error.why}" if one.error else ""
        rows.append((one.name, one.kind, one.module, one.ops or "", one.calls, why))
    console.print_table(("subgraph", "kind", "module", "ops", "calls", "why it stays eager"), rows)
    rows = []
    for number, at in enumerate(report.graph_breaks, start=1):
        line = f"{Path(at.file).name}:{at.line}  {at.code}"
        rows.append((number, line, at.reason, at.count, at.ops_left_eager, at.hint))
    console.print_table(("break", "line", "why", "times", "ops left eager", "what may help"), rows)


def _show_support(support: tuple[TargetSupport, ...], console: Console) -> None:
    """Show per target the operators that it does not take as they are, the worst first."""
    rows: list[tuple[object, ...]] = []
    for one in support:
        groups = Counter((op.status, op.op, op.instead) for op in one.ops)
        worst_first = sorted(groups, key=lambda group: (-_SEVERITY.index(group[0]), group[1]))
        for group in worst_first[:MOST_SUPPORT_ROWS]:
            status, op, instead = group
            rows.append((one.target, op, groups[group], status, instead))
        if len(groups) > MOST_SUPPORT_ROWS:
            rows.append((one.target, f"{len(groups) - MOST_SUPPORT_ROWS} more, see --json", "", "", ""))
    console.print_table(("target", "op", "ops", "how", "what happens instead"), rows)


def _verdict(dim: DimFinding) -> str:
    if dim.verdict is DimVerdict.DYNAMIC:
        high = "\u221e" if dim.max is None else str(dim.max)
        equal = f", equal to {dim.equal_to}" if dim.equal_to else ""
        return f"dynamic {dim.symbol or ''} in [{dim.min if dim.min is not None else 0}, {high}]{equal}"
    if dim.verdict is DimVerdict.UNKNOWN:
        return "only ever 1: cannot tell, add an example"
    return f"static {dim.size}"
