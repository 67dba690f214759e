"""``prune --preview``, ``sensitivity`` and ``values``: what a plan would do to a model; nothing is built.

That is: what pruning would remove, which ops disturb the outputs most at a low precision, and what an op gives.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from ace_studio.cli.app import Console, ContainFlag, InputOption, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import filled_recipe_for, recipe_for
from ace_studio.cli.user_word import may_send
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import (
    ModelCaptured,
    PrunePreviewRequest,
    PruningPreviewed,
    SensitivityFound,
    SensitivityRequest,
    ValuesFound,
    ValuesRequest,
)
from ace_studio.records.recipes.edit import with_changes
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.results.pruning import PrunedLayer, PruningReport
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.values import OpValues, TensorValues

MOST_WHOLE_LAYERS, MOST_OPS = 12, 30
"""Layers that are not pruned, and ops by sensitivity, which are shown; the JSON has all."""


@app.command()
@may_send
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


@app.command(name="sensitivity")
@may_send
def sensitivity_command(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml), or a model.")],
    precisions: Annotated[
        list[str] | None, typer.Option("--precision", help="Such as int8-static; repeat it for more.")
    ] = None,
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Measure how much each op, computed at a low precision, disturbs the outputs; the most sensitive first."""
    console = Console(as_json=as_json)
    recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain)
    _check_words(precisions or [])
    request = SensitivityRequest(
        job="sensitivity", recipe=recipe, folder=str(folder), trust_all=trust, precisions=tuple(precisions or ())
    )
    answer = follow(request, console, contain=contain)
    captured, found = answer.need(ModelCaptured), answer.need(SensitivityFound)
    return console.answer(found, partial(_show_sensitivity, graph=captured.graph), document=_document(captured, found))


def _check_words(words: list[str]) -> None:
    known = [str(precision) for precision in Precision if precision is not Precision.FP32]
    for word in words:
        if word not in known:
            raise AceError.of(
                ErrorCode.USAGE, f"'{word}' is not a low precision", remedy="Use one of: " + ", ".join(known)
            )


def _document(captured: ModelCaptured, found: SensitivityFound) -> dict[str, object]:
    return {
        "format": 1,
        "status": "ok",
        "fingerprint": captured.fingerprint,
        "sensitivity": found.ops,
        "forwards": found.forwards,
        "notes": found.notes,
    }


def _show_sensitivity(found: SensitivityFound, console: Console, graph: GraphTable) -> None:
    rows = {op_id: row for row, op_id in enumerate(graph.op_id)}
    ranked = sorted(found.ops, key=lambda one: one.sqnr_db)
    console.print_table(
        ("op", "module", "precision", "alone, dB"),
        [
            (one.id, graph.module[rows[one.id]] if one.id in rows else "", one.precision, f"{one.sqnr_db:.1f}")
            for one in ranked[:MOST_OPS]
        ],
    )
    if len(ranked) > MOST_OPS:
        console.print(f"{len(ranked) - MOST_OPS} more, see --json")
    console.print(f"Cost: {found.forwards:.1f} forward passes over {found.samples} samples")
    for note in found.notes:
        console.say(f"note: {note}")


@app.command(name="values")
@may_send
def values_command(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml), or a model.")],
    op: Annotated[str, typer.Option("--op", help="Id of an op, as `plan` and `trace --json` list them.")],
    example: Annotated[int, typer.Option(min=0, help="Index of the example, from 0.")] = 0,
    target: Annotated[str, typer.Option(help="Whose rounding is simulated; else the strictest of the recipe.")] = "",
    save: Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Save the whole tensors, .npz.")] = None,
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Show what one op gives for one example, and its weights: float, compressed, and their difference."""
    console = Console(as_json=as_json)
    if target and target not in TARGET_ROWS:
        raise AceError.of(
            ErrorCode.USAGE, f"There is no target named '{target}'", remedy="Use one of: " + ", ".join(TARGET_ROWS)
        )
    recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain)
    request = ValuesRequest(
        job="values",
        recipe=recipe,
        folder=str(folder),
        trust_all=trust,
        op_id=op,
        example=example,
        target=target,
        save="" if save is None else str(save.absolute()),
    )
    found = follow(request, console, contain=contain).need(ValuesFound)
    if found.values.example != example:
        raise AceError.of(
            ErrorCode.USAGE,
            f"There is no example {example}",
            why=f"the last one is {found.values.examples - 1}; they are counted from 0",
            remedy="Choose another example.",
        )
    # The pictures are for the window, and as bytes nothing for JSON.
    shown = replace(found.values, tensors=tuple(replace(one, pictures=()) for one in found.values.tensors))
    document = {"format": 1, "status": "ok", "fingerprint": found.fingerprint, "values": shown}
    return console.answer(shown, _show_values, document=document)


def _show_values(values: OpValues, console: Console) -> None:
    console.print(f"{values.op_id}, {values.precision}, example {values.example + 1} of {values.examples}")
    columns = ("", "shape", "lowest", "highest", "mean", "std", "zeros", "SQNR dB", "largest difference")
    console.print_table(columns, [row for one in values.tensors for row in _rows(one)])
    for note in values.notes:
        console.say(f"note: {note}")
    if values.saved:
        console.print(f"Saved: {values.saved}")


def _rows(one: TensorValues) -> list[tuple[str, ...]]:
    both = ((one.name, one.original), (f"{one.name}, compressed", one.compressed))
    rows = []
    for name, found in both:
        if found is not None:
            numbers = (f"{value:.4g}" for value in (found.low, found.high, found.mean, found.std))
            difference = (
                ("", "") if found is one.original else (_number(one.sqnr_db, ".1f"), _number(one.largest_difference))
            )
            shape = "x".join(map(str, one.shape)) if found is one.original else ""
            rows.append((name, shape, *numbers, f"{found.zeros:.1%}", *difference))
    return rows


def _number(value: float | None, form: str = ".4g") -> str:
    return "" if value is None else format(value, form)
