"""``recipes``: the ready recipes by family of models, and one of them for a model."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import Console, JsonFlag, app
from ace_studio.cli.running import filled_recipe_for
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.recipes.families import FAMILIES, ModelFamily
from ace_studio.records.recipes.file import parse_recipe, text_with, write_recipe
from ace_studio.records.recipes.paths import rebase_recipe
from ace_studio.session.choices import with_family


@app.command(name="recipes")
def recipes_command(
    name: Annotated[str, typer.Argument(help="A family of models; without it all are listed.")] = "",
    model: Annotated[
        Path | None, typer.Option("--model", help="Fill in this model, or the model and data of this recipe.")
    ] = None,
    entry: Annotated[str, typer.Option(help="Callable that makes the model.")] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Write the recipe here; else it is printed.")] = None,
    as_json: JsonFlag = False,
) -> int:
    """List the ready recipes, or write one for a model."""
    console = Console(as_json=as_json)
    if not name:
        document = {"format": 1, "recipes": [{"name": one.name, "label": one.label} for one in FAMILIES]}
        return console.answer(FAMILIES, _show_families, document=document)
    family = _family(name)
    text = family.recipe_text()
    if model is not None:
        recipe, folder = filled_recipe_for(model, console, entry=entry)
        home = out.absolute().parent if out is not None else folder
        recipe = rebase_recipe(with_family(recipe, family), folder, home)
        text = text_with(text, recipe)
    if out is not None:
        if out.exists():
            what, remedy = f"{out} exists already", "Choose another name with --out, or remove the file."
            raise AceError.of(ErrorCode.USAGE, what, remedy=remedy)
        write_recipe(parse_recipe(text, name=out.name), out, text=text)
        console.say(f"Written: {out}")
    if as_json:
        console.print_json({"format": 1, "recipe": text})
    elif out is None:
        sys.stdout.write(text)
    return ExitCode.DONE


def _family(name: str) -> ModelFamily:
    found = next((one for one in FAMILIES if one.name == name), None)
    if found is None:
        what, names = f"There is no recipe {name}", ", ".join(one.name for one in FAMILIES)
        raise AceError.of(ErrorCode.USAGE, what, why=f"there are {names}", remedy="`ace-studio recipes` lists them.")
    return found


def _show_families(families: Iterable[ModelFamily], console: Console) -> None:
    console.print_table(("recipe", "for"), ((one.name, one.label) for one in families))
    console.print("ace-studio recipes NAME --model FILE --out recipe.toml writes one for a model.")
