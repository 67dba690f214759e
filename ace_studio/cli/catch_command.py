"""``catch``: run the user's script, and keep the inputs that a module in it is called with."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ace_studio.cli.app import Console, ContainFlag, JsonFlag, app
from ace_studio.cli.follow import follow
from ace_studio.records.errors import ExitCode
from ace_studio.records.messages import CatchRequest, InputsCaught
from ace_studio.records.recipes.edit import name_caught_inputs
from ace_studio.records.recipes.paths import relative_to
from ace_studio.records.results.words import megabytes
from ace_studio.records.roots import present

MOST_MODULES = 40


@app.command()
def catch(  # noqa: PLR0913, PLR0917 - one argument per option of the command line
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A script (.py) that calls the model.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="For the script.")] = None,
    module: Annotated[str, typer.Option(help="Class or dotted path of a module; else the outermost one.")] = "",
    calls: Annotated[int, typer.Option(min=1, max=10_000, help="How many calls to keep at most.")] = 8,
    out: Annotated[Path, typer.Option("--out", help="Folder, or the .safetensors file to write.")] = Path("caught"),
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe to change: it then traces with the caught inputs.")
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the script.")] = False,
    contain: ContainFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Run a script and keep the inputs that its model is called with, as examples."""
    console = Console(as_json=as_json)
    present.get().writable(out.with_suffix(".json") if out.suffix else out)  # it lies beside the .safetensors
    request = CatchRequest(
        job="catch",
        script=str(script.absolute()),
        output=str(out.absolute()),
        module=module,
        calls=calls,
        arguments=tuple(arguments or ()),
        folder=str(Path.cwd()),
        trust_all=trust,
    )
    caught = follow(request, console, contain=contain).need(InputsCaught)
    named = relative_to(Path(caught.path), recipe.absolute().parent) if recipe is not None else ""
    if recipe is not None:
        name_caught_inputs(recipe, named)
    if caught.problem is not None:
        console.show_problems((caught.problem,))
    if as_json:
        console.print_json(_document(caught))
    else:
        _show(caught, console)
        if named:
            console.print(f'{recipe}: [inputs] caught = "{named}"')
    return ExitCode.DONE if caught.problem is None else caught.problem.exit_code


def _document(caught: InputsCaught) -> dict[str, Any]:
    record = msgspec.to_builtins(caught)
    found = {key: record[key] for key in ("path", "module", "seen", "kept", "bytes", "modules", "rows", "notes")}
    document = {"format": 1, "status": "ok" if caught.problem is None else "failed", "caught": found}
    return document if caught.problem is None else document | {"error": record["problem"]}


def _show(caught: InputsCaught, console: Console) -> None:
    console.print_table(
        ("module", "class", "calls", "called with"),
        [(one.path or "(outermost)", one.kind, one.calls, one.inputs) for one in caught.modules[:MOST_MODULES]],
    )
    if len(caught.modules) > MOST_MODULES:
        console.print(f"{len(caught.modules) - MOST_MODULES} more modules, see --json")
    console.print(
        f"Kept {caught.kept} of {caught.seen} calls of {caught.module}, {megabytes(caught.bytes)}: {caught.path}"
    )
    for note in caught.notes:
        console.say(f"note: {note}")
