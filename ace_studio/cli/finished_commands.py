"""``compare`` and ``export``: what can be done with finished runs."""

from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import Console, JsonFlag, app
from ace_studio.cli.running import compare, earlier_result, read_result, show_repetition
from ace_studio.session.artifacts import export_run


@app.command(name="compare")
def compare_command(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A run of the history, or a folder that one wrote.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="The other run.")],
    as_json: JsonFlag = False,
) -> int:
    """Compare two finished runs: what changed in each figure, and whether it is more than noise."""
    console = Console(as_json=as_json)
    found = compare(first, earlier_result(first), earlier_result(second))
    return console.answer(found, show_repetition, document={"format": 1, "status": "ok", "repeats": found})


@app.command(name="export")
def export_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a run wrote.")],
    to: Annotated[Path, typer.Option("--to", help="A folder that is there, or the new name.")],
    run: Annotated[
        int | None, typer.Option("--run", help="Index in `runs` of result.json, from 0; else the chosen one.")
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Copy the artifact of a finished run, with its SHA-256 beside it."""
    result = read_result(folder)
    index = run if run is not None else -1 if result.chosen is None else result.chosen
    written = export_run(result.runs, index, folder=folder, destination=to.expanduser().absolute())
    files = [{"path": str(path), "sha256": sha256} for path, sha256 in written.items()]
    document = {"format": 1, "status": "ok", "files": files}
    return Console(as_json=as_json).answer(written, _show_files, document=document)


def _show_files(written: dict[Path, str], console: Console) -> None:
    for path, sha256 in written.items():
        console.print(f"{sha256}  {path}")
