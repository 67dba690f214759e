"""``advise``: show the advice cards of a finished run, or make a new run from one."""

from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import Console, ContainFlag, JsonFlag, TrustFlag, app
from ace_studio.cli.running import read_result, recipe_of, run_recipe
from ace_studio.cli.show_result import show_advice
from ace_studio.cli.user_word import may_send
from ace_studio.records.advice import Advice
from ace_studio.records.advice_applied import applied_recipe
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.results import Result


@app.command(name="advise")
@may_send
def advise_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a run wrote.")],
    apply: Annotated[int | None, typer.Option("--apply", help="Number of the card to make a new run from.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="With --apply: folder for the new run.")] = None,
    recipe: Annotated[
        Path | None, typer.Option("--recipe", help="Apply the card to this recipe instead of the recipe that was run.")
    ] = None,
    done: Annotated[bool, typer.Option("--done", help="The preparation that the card asks for has been done.")] = False,
    trust: TrustFlag = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Show the cards of advice of a finished run, or make a new run from one."""
    console = Console(as_json=as_json)
    result = read_result(folder)
    if apply is None:
        return console.answer(result, show_advice, document={"format": 1, "status": "ok", "advice": result.advice})
    card = _card(result, apply, is_done=done)
    chosen, home = (read_recipe(recipe), recipe.absolute().parent) if recipe is not None else recipe_of(result, folder)
    changed = applied_recipe(chosen, result, card)
    if out is None:
        raise AceError.of(
            ErrorCode.USAGE, "A new run needs a folder", remedy="Add --out NEW; the first result stays where it is."
        )
    console.say(f"Applying card {apply}: {card.title}")
    return run_recipe(changed, home, out=out, trust=trust, contain=contain, console=console)


def _card(result: Result, number: int, *, is_done: bool) -> Advice:
    """The card with this number, counted from 1, if it can be applied now."""
    if not 1 <= number <= len(result.advice):
        count = len(result.advice)
        raise AceError.of(
            ErrorCode.USAGE,
            f"There is no card {number}",
            why=f"the run has {count} of them" if count else "the run has no advice",
            remedy="`ace-studio advise DIR` lists them.",
        )
    card = result.advice[number - 1]
    if not card.change:
        why, remedy = "it describes a manual change", card.do_first
        raise AceError.of(ErrorCode.USAGE, "This card changes nothing in the recipe", why=why, remedy=remedy)
    if card.do_first and not is_done:
        what, remedy = "This card needs a preparation before it can be applied", "Do it, and add --done."
        raise AceError.of(ErrorCode.USAGE, what, why=card.do_first, remedy=remedy)
    return card
