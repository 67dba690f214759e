"""``plan``: the precision that a recipe plans for every op, also with some of its values changed."""

import tomllib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ace_studio.cli.app import Console, ContainFlag, InputOption, JsonFlag, TrustFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import filled_recipe_for
from ace_studio.cli.user_word import may_send
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import ModelCaptured, TraceRequest
from ace_studio.records.recipes.edit import with_changes
from ace_studio.records.recipes.file import read_recipe_text, recipe_text, write_recipe
from ace_studio.records.recipes.holding import holding
from ace_studio.records.recipes.plan_index import plan_index
from ace_studio.records.recipes.recipe import Recipe

MOST_PLANNED_OPS = 40


@app.command(name="plan")
@may_send
def plan_command(
    path: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe (.toml), or a model.")],
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value, as plan.default=int8-static; repeat it."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Save the recipe here, in the folder of RECIPE.")
    ] = None,
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    inputs: InputOption = None,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Show which precision every op is planned at; change the recipe and save it, if the options say so."""
    console = Console(as_json=as_json)
    with holding(save):
        recipe, folder = filled_recipe_for(path, console, entry=entry, inputs=inputs, contain=contain)
        recipe = with_changes(recipe, _changes(values or []))
        if save is not None and save.resolve().parent != folder.resolve():
            why, remedy = "the paths in a recipe are relative to its folder", f"Save it in {folder}."
            raise AceError.of(ErrorCode.USAGE, f"{save} is not in the folder of {path.name}", why=why, remedy=remedy)
        request = TraceRequest(job="plan", recipe=recipe, folder=str(folder), trust_all=trust)
        found = follow(request, console, contain=contain).need(ModelCaptured)
        document: dict[str, Any] = {"format": 1, "status": "ok", "fingerprint": found.fingerprint}
        document |= {"recipe": recipe_text(recipe), "ops": _planned_ops(recipe, found)}
        document["refusals"] = [one for one in found.refusals if one.operators]
        if save is not None:
            write_recipe(recipe, save, text=read_recipe_text(path) if path.suffix == ".toml" else "")
            document["saved"] = str(save.absolute())
    return console.answer(recipe, partial(_show, document=document), document=document)


def _changes(values: list[str]) -> dict[str, dict[str, Any]]:
    """``plan.default=bf16`` as ``{"plan": {"default": "bf16"}}``; a value is TOML, or a bare word."""
    changes: dict[str, dict[str, Any]] = {}
    for text in values:
        name, equals, value = text.partition("=")
        table, dot, key = name.strip().partition(".")
        if not (table and dot and key and equals):
            raise AceError.of(ErrorCode.USAGE, f"'{text}' is not KEY=VALUE", remedy="Write plan.default=int8-static.")
        try:
            changes.setdefault(table, {})[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            changes.setdefault(table, {})[key] = value.strip()
    return changes


def _planned_ops(recipe: Recipe, found: ModelCaptured) -> list[dict[str, str]]:
    """Every op with its planned precision; none if a search finds the plan."""
    if recipe.plan.from_goal:
        return []
    graph, index = found.graph, plan_index(found.graph)
    planned = index.precisions(recipe.plan)
    return [
        {"id": graph.op_id[row], "op": graph.op[row], "module": graph.module[row], "planned": str(planned[row])}
        for row in index.rows
    ]


def _show(recipe: Recipe, console: Console, document: dict[str, Any]) -> None:
    ops = document["ops"]
    if recipe.plan.from_goal:
        console.print("A search finds the plan when the recipe is run: [plan] from_goal = true")
    console.print_table(
        ("op", "operator", "module", "planned"),
        [(one["id"], one["op"], one["module"], one["planned"]) for one in ops[:MOST_PLANNED_OPS]],
    )
    if len(ops) > MOST_PLANNED_OPS:
        console.print(f"{len(ops) - MOST_PLANNED_OPS} more, see --json")
    for precision, count in Counter(one["planned"] for one in ops).most_common():
        console.print(f"{precision}: {count} of {len(ops)} ops")
    if "saved" in document:
        console.print(f"Saved: {document['saved']}")
