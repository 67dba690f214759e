"""The server of one client: lists the tools, and runs one of them at a time as a command of the command line."""

import io
import json
import mimetypes
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from ace_studio import __version__
from ace_studio.cli import run_command
from ace_studio.cli.agents.runner import AgentRunner
from ace_studio.cli.agents.tools import ROWS, ToolRow, tool_description, tool_schema, with_places, words_of
from ace_studio.cli.app import Console, progress_text, report_failure
from ace_studio.cli.follow import kept_runner
from ace_studio.records.errors import AceError, ExitCode
from ace_studio.records.messages import Progress
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.roots import present
from ace_studio.records.sweeps import SWEEP_NAME

MOST_ENTRIES = 100
"""Entries of a list that an answer holds."""
EXIT_CODE_KEY = "ace-studio/exit-code"
_RUN_FILES = (RESULT_NAME, "report.html", "comparison.svg")
_SWEEP_FILES = (SWEEP_NAME, "sweep.html", "sweep.csv")
INSTRUCTIONS = """\
ACE Studio compresses PyTorch models. A usual order: inspect, trace, fix where capture stops, plan, run, export. Each
tool answers what the command of the same name prints with --json. Code runs only if the user has trusted it; a refusal
says what would run, and how the user gives trust. Give absolute paths. Tools read and write only below the folders that
the user named, and write over nothing that `replace` does not list."""


@contextmanager
def agent_server(runner: AgentRunner) -> Iterator[Server[Any]]:
    """A server whose tools run in ``runner``; ends the engine when it is left."""
    with tempfile.TemporaryDirectory(prefix="ace-answers-") as folder:
        tools = _Tools(runner, Path(folder))
        try:
            yield Server(
                "ace-studio",
                version=__version__,
                instructions=INSTRUCTIONS,
                on_list_tools=tools.list_tools,
                on_call_tool=tools.call_tool,
            )
        finally:
            runner.end()


async def serve_agent(runner: AgentRunner) -> None:
    """Serve the client at stdin and stdout until it goes; meanwhile what is printed goes to stderr."""
    with agent_server(runner) as server:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


class _Tools:
    def __init__(self, runner: AgentRunner, folder: Path) -> None:
        self._runner = runner
        self._folder = folder
        """For answers that are too long to be sent."""
        self._numbers = count(1)
        self._turn = anyio.Lock()

    async def list_tools(self, _context: ServerRequestContext[Any], _params: object) -> types.ListToolsResult:
        """Every tool with its arguments."""
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=row.name,
                    description=tool_description(row),
                    input_schema=tool_schema(row),
                    annotations=types.ToolAnnotations(read_only_hint=row.is_read_only),
                )
                for row in ROWS
            ]
        )

    async def call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool when the ones before have ended. If the client cancels the call, the job is cancelled."""
        row = next((one for one in ROWS if one.name == params.name), None)
        if row is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}")
        values = params.arguments or {}
        async with self._turn:
            self._begin(context, values)
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_with_the_call)
                code, printed = await anyio.to_thread.run_sync(_run_tool, row, values, self._runner)
                group.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint_if_cancelled()
        whole = self._folder / f"{row.name}-{next(self._numbers)}.json"
        return tool_answer(code, printed, values, whole)

    def _begin(self, context: ServerRequestContext[Any], values: dict[str, Any]) -> None:
        steps = count(1)

        def tell(event: Progress) -> None:
            # Called by the thread of the command. A call that was cancelled takes no progress any more.
            with suppress(CancelledError):
                report = partial(context.session.report_progress, next(steps), message=progress_text(event))
                anyio.from_thread.run(report)

        path = str(values.get("path", ""))
        self._runner.begin(tell, recipe=path if path.endswith(".toml") else "")

    async def _cancel_with_the_call(self) -> None:
        """Wait until the call is over, and cancel the job if there is still one."""
        try:
            await anyio.sleep_forever()
        finally:
            self._runner.cancel()


def _run_tool(row: ToolRow, values: dict[str, Any], runner: AgentRunner) -> tuple[int, str]:
    """Give the command; returns its exit code and what it printed. Only one may run at a time: stdout is taken."""
    printed = io.StringIO()
    kept_runner.set(runner)  # ends with the context of this thread, which is that of one call
    with redirect_stdout(printed):
        try:
            placed, roots = with_places(row, values, runner.roots)
            present.set(roots)
            code = run_command(words_of(row, placed))
        except AceError as error:
            code = report_failure(error.problems, Console(as_json=True))
    return code, printed.getvalue()


def tool_answer(code: int, printed: str, values: Mapping[str, Any], whole: Path) -> types.CallToolResult:
    """The answer of a tool whose command ended with ``code`` and ``printed`` JSON, with links to the files it wrote.

    ``whole`` is where the JSON is saved if a list in it is too long.
    """
    try:
        document = json.loads(printed)
    except json.JSONDecodeError:
        document = {"format": 1, "status": "cancelled" if code == ExitCode.CANCELLED else "failed"}
    short = _shortened(document)
    files = list(linked_files(document, values))
    content: list[types.ContentBlock] = [types.TextContent(text=json.dumps(short))]
    if short != document:
        whole.write_text(printed, encoding="utf-8")
        said = f"Lists of more than {MOST_ENTRIES} entries end there; {whole} holds the whole answer."
        content.append(types.TextContent(text=said))
        files.append(whole)
    content += [
        types.ResourceLink(
            name=path.name,
            uri=path.as_uri(),
            mime_type=mimetypes.guess_type(path.name)[0],
            size=path.stat().st_size if path.is_file() else None,
        )
        for path in files
    ]
    return types.CallToolResult(
        content=content,
        structured_content=short if isinstance(short, dict) else None,
        is_error=code not in (ExitCode.DONE, ExitCode.GOAL_NOT_MET),
        _meta={EXIT_CODE_KEY: int(code)},
    )


def linked_files(document: Any, values: Mapping[str, Any]) -> Iterator[Path]:
    """The files that an answer is about and that are there."""
    if not isinstance(document, dict):
        return
    folder = Path(values.get("out") or values.get("folder") or ".").absolute()
    runs = document.get("runs", ())
    named = [folder / name for name in _RUN_FILES if "runs" in document]
    named += [folder / name for name in _SWEEP_FILES if "rows" in document]
    named += [folder / run["artifact"] for run in runs if run.get("artifact")]
    named += [Path(document[key]) for key in ("saved", "patch") if key in document]
    named += [Path(name) for name in document.get("changed_files", ())]
    named += [Path(file["path"]) for file in document.get("files", ()) if isinstance(file, dict)]
    named += [Path(document["caught"]["path"])] if document.get("caught", {}).get("path") else []
    yield from (path.absolute() for path in dict.fromkeys(named) if path.exists())


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            return {key: _shortened(one) for key, one in value.items()}
        case list():
            return [_shortened(one) for one in value[:MOST_ENTRIES]]
        case _:
            return value
