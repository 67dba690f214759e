"""``history`` and ``trust``: what ACE Studio remembers on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import JsonFlag, app
from ace_studio.cli.console import Console
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore


@app.command()
def history(
    tag: Annotated[
        tuple[int, str] | None,
        typer.Option("--tag", metavar="RUN TAGS", help="Replace the tags of a run: its number, then tags as a,b."),
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """List the runs that were made on this machine, newest first; or tag one."""
    console = Console(as_json=as_json)
    store = History.open_default()
    if tag is not None:
        run_id, text = tag
        store.set_tags(run_id, [word.strip() for word in text.split(",") if word.strip()])
    runs = store.list()
    if as_json:
        console.print_json(runs)
        return ExitCode.DONE
    for one in runs:
        tags = f"[{', '.join(one.tags)}]" if one.tags else ""
        console.print("  ".join(filter(None, (str(one.id), one.date, one.title, one.summary, one.output, tags))))
    if not runs:
        console.print("No runs yet.")
    return ExitCode.DONE


@app.command()
def trust(
    revoke: Annotated[
        str, typer.Option("--revoke", metavar="PATH", help="Withdraw the trust in a file, by path or SHA-256.")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the trusted files; so does no option at all.")] = False,
    as_json: JsonFlag = False,
) -> int:
    """List the files that the window may run without asking, or withdraw the trust in one."""
    del list_
    console = Console(as_json=as_json)
    store = TrustStore(UserFolders.of_user().trust)
    if revoke:
        path = str(Path(revoke).expanduser().absolute())
        withdrawn = [file for file in store.files if revoke == file.sha256 or path == file.path]
        if not withdrawn:
            raise AceError.of(
                ErrorCode.NOT_FOUND,
                f"{revoke} is not a trusted file",
                remedy="List the trusted files: ace-studio trust --list",
            )
        for file in withdrawn:
            store.revoke(file.sha256)
            console.say(f"Trust withdrawn: {file.path} ({file.sha256})")
    if as_json:
        console.print_json(store.files)
        return ExitCode.DONE
    for file in store.files:
        console.print(f"{file.date}  {file.sha256}  {file.path}")
    if not store.files:
        console.print("No trusted files.")
    return ExitCode.DONE
