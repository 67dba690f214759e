"""``prune``: what pruning would take away, layer by layer, and what it does to the outputs; nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import rich.markup
import typer

from ace_studio.cli.commands import JsonFlag, TrustFlag, app, fail, recipe_for
from ace_studio.cli.follow import follow
from ace_studio.cli.show import Console, show_table
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.messages import PrunePreviewRequest
from ace_studio.records.recipes.edit import with_changes
from ace_studio.records.results.pruning import PrunedLayer, PruningReport

MOST_KEPT = 12
"""Layers that stay whole which are shown; the JSON has all."""


@app.command()
def prune(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml).")],
    preview: Annotated[
        bool, typer.Option("--preview", help="Say what would go; pruning itself is a part of `ace-studio run`.")
    ] = False,
    method: Annotated[str, typer.Option(help="unstructured, n:m or structured; else as the recipe says.")] = "",
    amount: Annotated[float | None, typer.Option(help="Fraction that goes; else as the recipe says.")] = None,
    trust: TrustFlag = False,
    as_json: JsonFlag = False,
) -> int:
    """Show what pruning would take away and what it does to the outputs, without building anything."""
    console = Console(as_json=as_json)
    try:
        _require_preview(preview)
        recipe, folder = recipe_for(path, entry="", inputs=[])
        asked: dict[str, Any] = {"method": method or None, "amount": amount}
        if changes := {key: value for key, value in asked.items() if value is not None}:
            recipe = with_changes(recipe, {"prune": changes})
    except AceError as error:
        return fail(error.problems, console)
    request = PrunePreviewRequest(job="prune", recipe=recipe, folder=str(folder), trust_all=trust)
    answer = follow(request, console)
    if answer.problems or answer.pruning is None:
        return fail(answer.problems, console)
    if as_json:
        console.print_json({"format": 1, "status": "ok", "pruning": msgspec.to_builtins(answer.pruning)})
    else:
        show_pruning(answer.pruning, console)
    return ExitCode.DONE


def _require_preview(is_preview: bool) -> None:
    if not is_preview:
        raise AceError.of(
            ErrorCode.USAGE,
            "`ace-studio prune` only shows what would go",
            why="pruning is a step of a run: `ace-studio run` prunes, captures, builds and compares",
            remedy="Write ace-studio prune RECIPE --preview, or ace-studio run RECIPE --out DIR.",
        )


def show_pruning(report: PruningReport, console: Console) -> None:
    """The layers that change, the sums, and the layers that stay."""
    rows = [_row(layer) for layer in report.layers]
    console.print(
        show_table(("layer", "type", "shape", "after", "weights kept", "MACs", "after", "bytes", "after", "SQNR"), rows)
    )
    console.print(
        f"{report.method} {report.pattern or f'{report.amount:.0%}'} by {report.importance}: "
        f"parameters {report.parameters_before:,} -> {report.parameters_after:,}, "
        f"MACs {report.macs_before:,} -> {report.macs_after:,}, "
        f"bytes {report.bytes_before:,} -> {report.bytes_after:,}"
    )
    console.print(f"Fidelity of the outputs before any fine-tuning: {_decibel(report.sqnr_db)}")
    if report.metric_before is not None and report.metric_after is not None:
        console.print(f"Metric: {report.metric_before:.4f} -> {report.metric_after:.4f}")
    console.print(report.speed)
    for one in report.kept[:MOST_KEPT]:
        console.print(rich.markup.escape(f"kept whole: {one.module or 'the model'} ({one.reason})"))
    if len(report.kept) > MOST_KEPT:
        console.print(f"kept whole: {len(report.kept) - MOST_KEPT} more, see --json")


def _row(layer: PrunedLayer) -> list[str]:
    return [
        layer.module,
        layer.type,
        layer.shape_before,
        layer.shape_after,
        f"{layer.weights_after:,} of {layer.weights_before:,}",
        f"{layer.macs_before:,}",
        f"{layer.macs_after:,}",
        f"{layer.bytes_before:,}",
        f"{layer.bytes_after:,}",
        _decibel(layer.sqnr_db),
    ]


def _decibel(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} dB"
