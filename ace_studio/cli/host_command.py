"""``engine host``: another machine for the engine, reached by ssh."""

from typing import Annotated

import msgspec
import typer

from ace_studio.cli.app import Console, JsonFlag
from ace_studio.cli.engine_command import engine_app
from ace_studio.jobs.hosts.check import check_host
from ace_studio.jobs.hosts.install import install_there
from ace_studio.records.errors import ExitCode
from ace_studio.records.hosts import HostReport
from ace_studio.records.messages import LogLine

host_app = typer.Typer(help="The engine on another machine, by ssh.")
engine_app.add_typer(host_app, name="host")


@host_app.command(name="check")
def check(
    host: Annotated[str, typer.Argument(help="user@name, or a name of your ssh configuration.")],
    python: Annotated[str, typer.Option(help="The interpreter there; python3 if none is named.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Say what a host has for an engine, what is missing, and the line that installs it."""
    return _answer(check_host(host, python), Console(as_json=as_json))


@host_app.command(name="install")
def install(
    host: Annotated[str, typer.Argument(help="user@name, or a name of your ssh configuration.")],
    python: Annotated[str, typer.Option(help="The interpreter there that the environment is made of.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Install what an engine lacks on a host, into an environment of its own there."""
    console = Console(as_json=as_json)
    report = check_host(host, python)
    if report.missing:
        console.say(f"Installing on {host}: {', '.join(report.missing)}")
        made = install_there(host, python, report.missing, lambda line: console.log(LogLine(text=line)))
        report = check_host(host, made)
    else:
        console.say(f"Nothing is missing on {host}")
    code = _answer(report, console)
    if not report.problems:
        console.say(f'In the recipe: [engine] host = "{host}", python = "{report.python or "python3"}"')
    return code


def _answer(report: HostReport, console: Console) -> int:
    console.answer(report, show_host, document={"format": 1, **msgspec.to_builtins(report)})
    console.show_problems(report.problems)
    return report.problems[0].exit_code if report.problems else ExitCode.DONE


def show_host(report: HostReport, console: Console) -> None:
    """Show what a host has."""
    console.print(f"{report.host}: Python {report.version} at {report.executable}")
    console.print(f"{report.platform}, {report.cores} cores, {report.memory_bytes / 2**30:.1f} GiB")
    console.print(f"{report.disk_free_bytes / 1e9:.1f} GB are free in {report.cache}")
    console.print_table(("package", "version"), report.packages.items())
    console.print_table(
        ("target", "packages"), [(name, install or "installed") for name, install in report.targets.items()]
    )
    if not report.problems:
        console.print(f"An engine can run there (asked in {report.seconds:.1f} s).")
