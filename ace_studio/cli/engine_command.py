"""``engine``: the installed engine packs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ace_studio.cli.app import JsonFlag, app
from ace_studio.cli.console import Console
from ace_studio.jobs.engine_packs import InstallStep, find_packs, install, remove
from ace_studio.jobs.launch import default_interpreter
from ace_studio.records.errors import ExitCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.results.words import megabytes

engine_app = typer.Typer(help="List, install and remove engine packs: a Python with torch, as one file.")
app.add_typer(engine_app, name="engine")


@engine_app.command(name="list")
def list_packs(as_json: JsonFlag = False) -> int:
    """List the installed packs, and the Python that runs the engine."""
    console = Console(as_json=as_json)
    if as_json:
        console.print_json({"format": 1, "python": default_interpreter(), "packs": msgspec.to_builtins(find_packs())})
    else:
        show_packs(console, default_interpreter())
    return ExitCode.DONE


@engine_app.command(name="install")
def install_pack(
    file: Annotated[Path, typer.Argument(help="A file ace-engine-VERSION-PLATFORM-KIND.tar.gz.")],
    as_json: JsonFlag = False,
) -> int:
    """Install a pack from a file. Its checksum is compared if FILE.sha256 lies beside it."""
    console = Console(as_json=as_json)

    def report(step: InstallStep, fraction: float) -> None:
        console.show_progress(Progress(phase=Phase.INSTALL, detail=step, fraction=fraction or None))

    with console.progress():
        pack = install(file.expanduser().absolute(), report)
    console.say(f"{pack.name} is installed in {pack.folder}")
    if as_json:
        console.print_json(pack)
    return ExitCode.DONE


@engine_app.command(name="make")
def make_pack_online(
    python: Annotated[str, typer.Option(help="The Python to make it of; the first on the PATH that can.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Make a pack from the network, by pip in an environment of a Python of this machine, with pip's own settings."""
    from ace_studio.jobs.online_engine import make_online  # noqa: PLC0415 - loaded when it is needed

    console = Console(as_json=as_json)

    def say(line: str) -> None:
        console.show_progress(Progress(phase=Phase.INSTALL, detail=line))

    with console.progress():
        pack = make_online(python, say)
    console.say(f"{pack.name} is installed in {pack.folder}")
    if as_json:
        console.print_json(pack)
    return ExitCode.DONE


@engine_app.command(name="remove")
def remove_pack(name: str, as_json: JsonFlag = False) -> int:
    """Remove an installed pack. One that is in use stays."""
    console = Console(as_json=as_json)
    remove(name)
    console.say(f"{name} was removed")
    if as_json:
        console.print_json({"format": 1, "removed": name})
    return ExitCode.DONE


def show_packs(console: Console, python: str, why: str = "") -> None:
    """Show the Python of the engine, with the words that say why it is that one, and the packs."""
    packs = find_packs()
    console.print(f"The engine runs in {python}{why}")
    console.print_table(
        ("engine pack", "size", "state"),
        [
            (pack.name, megabytes(pack.bytes), pack.fault or ("in use" if pack.python == python else "installed"))
            for pack in packs
        ],
    )
    if not packs:
        console.print("No engine packs are installed.")
