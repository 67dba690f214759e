"""``mcp``: the commands as tools for scripts and agents."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ace_studio.cli.app import ContainFlag, app
from ace_studio.jobs.engines import EngineClient
from ace_studio.records.errors import AceError, ErrorCode, ExitCode
from ace_studio.records.roots import Roots
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.trust import TrustStore


@app.command(name="mcp")
def serve_tools(
    contain: ContainFlag = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Another machine that recipes may name for the engine; repeat it for more.")
    ] = None,
    write: Annotated[
        list[Path] | None,
        typer.Option("--write", metavar="DIR", help="Tools write only below it; repeat it. Else: the present folder."),
    ] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option("--read", metavar="DIR", help="Tools read below it as well; repeat it. Else: the present folder."),
    ] = None,
) -> int:
    """Serve the commands as tools of an MCP server, at stdin and stdout, until the client goes."""
    if importlib.util.find_spec("mcp") is None:
        raise AceError.of(
            ErrorCode.NOT_INSTALLED, "The server for agents needs mcp", remedy="pip install 'ace-studio[mcp]'"
        )
    import anyio  # noqa: PLC0415 - it comes with mcp, and takes a second that other commands save

    from ace_studio.cli.agents.runner import AgentRunner  # noqa: PLC0415 - as above
    from ace_studio.cli.agents.server import serve_agent  # noqa: PLC0415

    def make_client() -> EngineClient:
        return EngineClient(contain=lambda: contain, is_lazy=True)

    roots = Roots(read=_folders(read), write=_folders(write), own=UserFolders.of_user().own)
    store = TrustStore(UserFolders.of_user().trust)
    anyio.run(serve_agent, AgentRunner(store, make_client, roots, contain=contain, hosts=host or ()))
    return ExitCode.DONE


def _folders(named: Sequence[Path] | None) -> tuple[Path, ...]:
    """The folders that the user named, or the present one; but never a whole disk that nobody named.

    Raises: AceError(NOT_FOUND) if one is not there.
    """
    here = Path.cwd().resolve()
    if not named:
        return () if here == Path(here.anchor) else (here,)
    for folder in named:
        if not folder.is_dir():
            raise AceError.of(ErrorCode.NOT_FOUND, f"There is no folder {folder}", remedy="Name one that is there")
    return tuple(folder.resolve() for folder in named)
