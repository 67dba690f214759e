"""``prune``: what pruning would remove, layer by layer, and how the outputs change; nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ace_studio.cli.app import Console, ContainFlag, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import recipe_for
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import PrunePreviewRequest, PruningPreviewed
from ace_studio.records.recipes.edit import with_changes
from ace_studio.records.results.pruning import PrunedLayer, PruningReport

MOST_WHOLE_LAYERS = 12
"""Layers that are not pruned which are shown; the JSON has all."""


@app.command()
def prune(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml).")],
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be removed; `ace-studio run` prunes.")
    ] = False,
    method: Annotated[str, typer.Option(help="unstructured, n:m or structured; else as the recipe says.")] = "",
    amount: Annotated[float | None, typer.Option(help="Fraction to remove; else as the recipe says.")] = None,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Show what pruning would remove and how the outputs change, without building anything."""
    console = Console(as_json=as_json)
    if not preview:
        raise AceError.of(
            ErrorCode.USAGE,
            "`ace-studio prune` only shows what would be removed",
            why="pruning is a phase of a run: `ace-studio run` prunes, captures, builds and compares",
            remedy="Write ace-studio prune RECIPE --preview, or ace-studio run RECIPE --out DIR.",
        )
    recipe, folder = recipe_for(path)
    options: dict[str, Any] = {"method": method or None, "amount": amount}
    if changes := {key: value for key, value in options.items() if value is not None}:
        recipe = with_changes(recipe, {"prune": changes})
    request = PrunePreviewRequest(job="prune", recipe=recipe, folder=str(folder), trust_all=trust)
    found = follow(request, console, contain=contain).need(PruningPreviewed)
    document = {"format": 1, "status": "ok", "pruning": found.report}
    return console.answer(found.report, show_pruning, document=document)


def show_pruning(report: PruningReport, console: Console) -> None:
    """Show the layers that change, the sums, and the layers that stay whole."""
    console.print_table(
        ("layer", "type", "shape", "after", "weights kept", "MACs", "after", "bytes", "after", "SQNR"),
        map(_row, report.layers),
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
    for one in report.kept[:MOST_WHOLE_LAYERS]:
        console.print(f"kept whole: {one.module or 'the model'} ({one.reason})")
    if len(report.kept) > MOST_WHOLE_LAYERS:
        console.print(f"kept whole: {len(report.kept) - MOST_WHOLE_LAYERS} more, see --json")


def _row(layer: PrunedLayer) -> list[str]:
    costs = (layer.macs_before, layer.macs_after, layer.bytes_before, layer.bytes_after)
    kept = f"{layer.weights_after:,} of {layer.weights_before:,}"
    shapes = (layer.shape_before, layer.shape_after)
    return [layer.module, layer.type, *shapes, kept, *(f"{cost:,}" for cost in costs), _decibel(layer.sqnr_db)]


def _decibel(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} dB"
