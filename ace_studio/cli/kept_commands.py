"""``history`` and ``trust``: what ACE Studio remembers on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import Console, JsonFlag, app
from ace_studio.cli.follow import follow
from ace_studio.cli.running import recipe_for
from ace_studio.cli.user_word import ask
from ace_studio.records.errors import AceError, ErrorCode, ExitCode, Problem
from ace_studio.records.messages import FileInspected, InspectRequest, TraceRequest
from ace_studio.records.untrusted import untrusted_problem
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import MOST_LISTED, History
from ace_studio.session.kept.trust import TrustStore, contents_of, hash_in


@app.command()
def history(
    tag: Annotated[
        tuple[int, str] | None,
        typer.Option("--tag", metavar="RUN TAGS", help="Replace the tags of a run: its number, then tags as a,b."),
    ] = None,
    name: Annotated[
        tuple[int, str] | None,
        typer.Option("--name", metavar="RUN NAME", help="Name a run: its number, then the name; empty for none."),
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """List the runs that were made on this machine, newest first; or tag or name one."""
    console = Console(as_json=as_json)
    store = History.open_default()
    if tag is not None:
        run_id, text = tag
        store.set_tags(run_id, [word.strip() for word in text.split(",") if word.strip()])
    if name is not None:
        store.set_name(*name)
    runs = store.list()
    if as_json:
        console.print_json(runs)
        return ExitCode.DONE
    for one in runs:
        tags = f"[{', '.join(one.tags)}]" if one.tags else ""
        words = (str(one.id), one.date, one.title, one.name, one.summary, one.output, tags)
        console.print("  ".join(filter(None, words)))
    if not runs:
        console.print("No runs yet.")
    if len(runs) >= MOST_LISTED:
        console.print(f"Only the newest {MOST_LISTED:,} are listed.")
    return ExitCode.DONE


@app.command()
def trust(
    revoke: Annotated[
        str, typer.Option("--revoke", metavar="PATH", help="Withdraw the trust in a file, by path or SHA-256.")
    ] = "",
    add: Annotated[
        list[Path] | None,
        typer.Option("--add", metavar="PATH", help="Ask whether this file may run, or all that a recipe needs."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the trusted files; so does no option at all.")] = False,
    as_json: JsonFlag = False,
) -> int:
    """List the files that the window and `mcp` may run without asking, trust more, or withdraw the trust in one."""
    del list_
    console = Console(as_json=as_json)
    store = TrustStore(UserFolders.of_user().trust)
    for given in add or ():
        _ask_for_trust(given, store, console)
    if revoke:
        path = Path(revoke).expanduser().resolve()
        withdrawn = [file for file in store.files if revoke == file.sha256 or path == Path(file.path).resolve()]
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


def _ask_for_trust(path: Path, store: TrustStore, console: Console) -> None:
    """Show what would run or be sent, and trust it if a person at the terminal says so. Raises: AceError as `ask`."""
    asked = [one for one in _code_of(path, store, console) if not store.is_trusted(hash_in(one))]
    if not asked:
        console.say(f"{path}: nothing in it has to be trusted, or all of it is trusted")
        return
    ask(asked, console)


def _code_of(path: Path, store: TrustStore, console: Console) -> tuple[Problem, ...]:
    """What has to be trusted, each as the engine asks for it.

    Of a recipe that is what the engine refuses when it captures the model with what is trusted already.

    Raises: AceError for a file that cannot be read.
    """
    if path.suffix == ".toml":
        recipe, folder = recipe_for(path)
        request = TraceRequest(job="trust", recipe=recipe, folder=str(folder), trusted_sha256=store.hashes)
        problems = follow(request, console, asks=False).problems
        if problems and (problems[0].exit_code is ExitCode.USAGE or not all(map(hash_in, problems))):
            raise AceError(*problems)
        return tuple(one for one in problems if one.code is ErrorCode.UNTRUSTED)
    found = follow(InspectRequest(job="trust", path=str(path.absolute())), console).need(FileInspected)
    if found.report.trust != "code":
        return ()
    reasons = {file.path: file.would_run for file in found.report.files}
    return tuple(
        untrusted_problem(Path(where), sha256, "; ".join(reasons.get(where) or found.report.would_run))
        for where, sha256 in contents_of(found.report)
    )
