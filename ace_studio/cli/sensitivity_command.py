"""``sensitivity``: which ops disturb the outputs most at a low precision; nothing is built or measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import Console, ContainFlag, InputOption, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import filled_recipe_for
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.graph import GraphTable
from ace_studio.records.messages import ModelCaptured, SensitivityFound, SensitivityRequest
from ace_studio.records.recipes.plan import Precision

MOST_OPS = 30


@app.command(name="sensitivity")
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
    return console.answer(found, partial(_show, graph=captured.graph), document=_document(captured, found))


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


def _show(found: SensitivityFound, console: Console, graph: GraphTable) -> None:
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
