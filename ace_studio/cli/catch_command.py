"""``catch``: run a script of the user's, and keep what a module in it is called with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import rich.box
import rich.markup
import rich.table
import typer

from ace_studio.cli.commands import JsonFlag, app, fail
from ace_studio.cli.follow import follow
from ace_studio.cli.show import Console
from ace_studio.records.errors import AceError, ExitCode
from ace_studio.records.messages import CatchRequest, InputsCaught
from ace_studio.records.recipes.edit import name_caught_inputs

_LINES_SHOWN = 40


@app.command()
def catch(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A script (.py) that calls the model.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="For the script.")] = None,
    module: Annotated[str, typer.Option(help="Class or dotted path of a module; else the outermost one.")] = "",
    calls: Annotated[int, typer.Option(min=1, max=10_000, help="How many calls to keep at most.")] = 8,
    out: Annotated[Path, typer.Option("--out", help="Folder, or the .safetensors file to write.")] = Path("caught"),
    recipe: Annotated[Path | None, typer.Option(help="A recipe that is to trace with what was caught.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the script.")] = False,
    as_json: JsonFlag = False,
) -> int:
    """Run a script and keep what its model is called with, as example inputs."""
    console = Console(as_json=as_json)
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
    answer = follow(request, console)
    if answer.problems or answer.caught is None:
        return fail(answer.problems, console)
    caught = answer.caught
    try:
        named = _name_in(recipe, Path(caught.path)) if recipe is not None else ""
    except AceError as error:
        return fail(error.problems, console)
    if caught.problem is not None:
        console.say(f"error: {caught.problem.as_text()}")
    if as_json:
        console.print_json(_document(caught))
    else:
        _show(caught, console)
        if named:
            console.print(rich.markup.escape(f'{recipe}: [inputs] caught = "{named}"'))
    return ExitCode.DONE if caught.problem is None else caught.problem.exit_code


def _name_in(recipe: Path, caught: Path) -> str:
    """Let the recipe trace with the caught inputs, by a path that is relative to it; returns that path."""
    try:
        name = Path(os.path.relpath(caught, recipe.absolute().parent)).as_posix()
    except ValueError:  # another drive
        name = caught.as_posix()
    name_caught_inputs(recipe, name)
    return name


def _document(caught: InputsCaught) -> dict[str, Any]:
    record = msgspec.to_builtins(caught)
    found = {key: record[key] for key in ("path", "module", "seen", "kept", "bytes", "modules", "rows", "notes")}
    document = {"format": 1, "status": "ok" if caught.problem is None else "failed", "caught": found}
    return document if caught.problem is None else document | {"error": record["problem"]}


def _show(caught: InputsCaught, console: Console) -> None:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for column in ("module", "class", "calls", "called with"):
        table.add_column(column, overflow="fold")
    for one in caught.modules[:_LINES_SHOWN]:
        words = [rich.markup.escape(text) for text in (one.path or "(outermost)", one.kind)]
        table.add_row(*words, str(one.calls), rich.markup.escape("\n".join(one.inputs)))
    console.print(table)
    if len(caught.modules) > _LINES_SHOWN:
        console.print(f"{len(caught.modules) - _LINES_SHOWN} more modules, see --json")
    console.print(
        rich.markup.escape(
            f"Kept {caught.kept} of {caught.seen} calls of {caught.module}, {caught.bytes / 1e6:.3f} MB: {caught.path}"
        )
    )
    for note in caught.notes:
        console.say(f"note: {note}")
