"""``engine``: the installed engine packs."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ace_studio.cli.app import Console, JsonFlag, app
from ace_studio.jobs.engine_packs import Pack, find_packs, remove
from ace_studio.jobs.launch import default_interpreter
from ace_studio.jobs.pack_install import Consent, InstallStep, PackOffer, examine, install
from ace_studio.jobs.signature import Signer
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
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
    yes: Annotated[bool, typer.Option("--yes", help="Install it without a question if the makers signed it.")] = False,
    trust: Annotated[
        str, typer.Option("--trust", metavar="SHA256", help="Install the file with this SHA-256, signed or not.")
    ] = "",
    as_json: JsonFlag = False,
) -> int:
    """Say what is in a file and who signed it, ask, and install it. FILE.minisig and FILE.sha256 are compared."""
    console = Console(as_json=as_json)

    def report(step: InstallStep, fraction: float) -> None:
        console.show_progress(Progress(phase=Phase.INSTALL, detail=step, fraction=fraction or None))

    with console.progress():
        offer = examine(file.expanduser().absolute(), report)
    console.say(*_words(offer))
    consent = Consent(sha256=trust, takes_unsigned=True) if trust else _ask(offer, is_agreed=yes)
    with console.progress():
        return _tell(console, install(offer, consent, report))


def _words(offer: PackOffer) -> list[str]:
    """What a person should know before it is installed."""
    signed = {
        Signer.MAKERS: f"by the makers of this program, who say: {offer.signed.comment}",
        Signer.OTHERS: f"by the key {offer.signed.key_id}, which is not the makers' and cannot be checked",
        Signer.NOBODY: "by nobody",
    }
    place = f", in place of {offer.replaces}" if offer.replaces else ""
    lines = (
        ("engine pack", f"{offer.name}, {megabytes(offer.bytes)}, torch {offer.packages.get('torch', 'unknown')}"),
        ("file", offer.file + (f" ({offer.origin})" if offer.origin else "")),
        ("SHA-256", offer.sha256),
        ("signed", signed[offer.signed.signer]),
        ("used for", f"its programs load and run your models, with all that you may do on this machine{place}"),
    )
    return [f"{name}: {text}" for name, text in lines]


def _ask(offer: PackOffer, *, is_agreed: bool) -> Consent:
    """Ask at the terminal, harder if the makers did not sign it.

    Raises: AceError(UNTRUSTED) if the answer is no, or nobody is there to give one.
    """
    if offer.is_signed and is_agreed:
        return Consent(sha256=offer.sha256)
    if not sys.stdin.isatty():
        how = "--yes" if offer.is_signed else "--trust SHA256, with the SHA-256 that its maker names"
        raise AceError.of(
            ErrorCode.UNTRUSTED,
            f"{offer.name} was not installed: nobody agreed to it",
            why="the input of this command is not a terminal",
            remedy=f"Run the command in a terminal, or agree by {how}",
            where=offer.file,
        )
    if offer.is_signed:
        is_agreed = typer.confirm("Install it?", err=True)
    else:
        question = "The makers did not sign it. To install it nevertheless, type the last 8 digits of its SHA-256"
        is_agreed = typer.prompt(question, default="", show_default=False, err=True).strip() == offer.sha256[-8:]
    if not is_agreed:
        raise AceError.of(ErrorCode.UNTRUSTED, f"{offer.name} was not installed", why="the answer was no")
    return Consent(sha256=offer.sha256, takes_unsigned=not offer.is_signed)


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
        return _tell(console, make_online(python, say))


def _tell(console: Console, pack: Pack) -> int:
    console.say(f"{pack.name} is installed in {pack.folder}")
    if console.as_json:
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
    states = (pack.fault or ("in use" if pack.python == python else "installed") for pack in packs)
    rows = [(pack.name, megabytes(pack.bytes), pack.signer, state) for pack, state in zip(packs, states, strict=True)]
    console.print_table(("engine pack", "size", "signed by", "state"), rows)
    if not packs:
        console.print("No engine packs are installed.")
