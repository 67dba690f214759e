"""The server, driven by the client of the SDK in the same process, with a fake engine."""

import anyio
import pytest
from mcp import Client, MCPError

from ace_studio.cli.agents.answers import EXIT_CODE_KEY
from ace_studio.cli.agents.runner import AgentRunner
from ace_studio.cli.agents.server import agent_server
from ace_studio.cli.agents.tools import ROWS
from ace_studio.jobs.client import WorkerClient
from ace_studio.records.roots import Roots
from ace_studio.session.kept.trust import TrustStore


@pytest.fixture(params=["auto", "legacy"])
def talk(request, tmp_path, fake_engine):
    """Runs ``calls(client)`` against a server; in both protocols that clients speak."""

    def run(calls):
        runner = AgentRunner(TrustStore(tmp_path / "trusted.json"), WorkerClient, Roots(write=(tmp_path.resolve(),)))

        async def main():
            with agent_server(runner) as server, anyio.fail_after(60):
                async with Client(server, mode=request.param) as client:
                    await calls(client)

        anyio.run(main)

    return run


def test_the_tools_are_listed_with_their_arguments(talk):
    async def calls(client):
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [row.name for row in ROWS]
        assert tools[0].input_schema["required"] == ["path"]

    talk(calls)


def test_a_tool_answers_and_tells_its_progress(talk, recipe):
    told = []

    async def hear(progress, total, message):
        told.append((progress, message))

    async def calls(client):
        found = await client.call_tool("inspect", {"path": str(recipe)}, progress_callback=hear)
        assert found.structured_content["kind"] == "python" and not found.is_error
        found = await client.call_tool("trace", {"path": str(recipe)}, progress_callback=hear)
        assert found.is_error

    talk(calls)
    assert any(message.startswith("Capturing the graph: model.py") for _, message in told)
    assert [progress for progress, _ in told] == sorted(progress for progress, _ in told)


def test_wrong_arguments_and_tools_are_refused_in_words(talk, recipe):
    async def calls(client):
        found = await client.call_tool("trace", {"path": str(recipe), "trust": True})
        assert found.is_error and found.structured_content["error"]["why"] == "no tool gives trust"
        assert found.meta[EXIT_CODE_KEY] == 2
        found = await client.call_tool("trace", {})
        assert found.is_error and found.structured_content["error"]["code"] == "usage"
        with pytest.raises(MCPError, match="no tool engine"):
            await client.call_tool("engine", {})

    talk(calls)


def test_a_long_job_is_cancelled_with_its_call_and_the_next_call_is_answered(talk, tmp_path):
    (tmp_path / "long.toml").write_text('format = 1\n[model]\nsource = "model.py"\nentry = "listen"\n')

    async def calls(client):
        async with anyio.create_task_group() as group:

            async def hear(progress, total, message):
                if message.startswith("Measuring"):
                    group.cancel_scope.cancel()

            await client.call_tool("trace", {"path": str(tmp_path / "long.toml")}, progress_callback=hear)
        assert group.cancel_scope.cancelled_caught
        found = await client.call_tool("inspect", {"path": str(tmp_path / "long.toml")})
        assert not found.is_error

    talk(calls)
