"""``values``: what ops give for one example, in float and under the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ace_studio.cli.app import Console, ContainFlag, InputOption, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import filled_recipe_for
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import ValuesFound, ValuesRequest
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.values import OpValues, TensorValues


@app.command(name="values")
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
    return console.answer(shown, _show, document=document)


def _show(values: OpValues, console: Console) -> None:
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
