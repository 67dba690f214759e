"""The server, driven by the client of the SDK in the same process, with a fake engine."""

import json

import anyio
import pytest
from mcp import Client, MCPError

from ace_studio.cli.agents.runner import AgentRunner
from ace_studio.cli.agents.server import EXIT_CODE_KEY, MOST_ENTRIES, agent_server, linked_files, tool_answer
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


def test_the_answer_is_the_json_of_the_command(tmp_path):
    found = tool_answer(0, '{"format": 1, "status": "ok"}', {}, tmp_path / "whole.json")
    assert found.structured_content == {"format": 1, "status": "ok"} and not found.is_error
    assert json.loads(found.content[0].text) == found.structured_content
    assert found.meta == {EXIT_CODE_KEY: 0}


def test_a_goal_that_is_not_met_is_an_answer_and_a_failed_job_is_an_error(tmp_path):
    assert not tool_answer(4, '{"status": "goal-not-met"}', {}, tmp_path / "whole.json").is_error
    failed = tool_answer(6, '{"status": "failed"}', {}, tmp_path / "whole.json")
    assert failed.is_error and failed.meta == {EXIT_CODE_KEY: 6}


def test_a_command_that_printed_nothing_is_said_to_have_failed(tmp_path):
    assert tool_answer(130, "", {}, tmp_path / "whole.json").structured_content == {"format": 1, "status": "cancelled"}


def test_a_list_is_text_only(tmp_path):
    found = tool_answer(0, "[1, 2]", {}, tmp_path / "whole.json")
    assert found.structured_content is None and found.content[0].text == "[1, 2]"


def test_a_long_list_ends_early_and_the_whole_answer_is_a_file(tmp_path):
    whole = tmp_path / "whole.json"
    printed = json.dumps({"capture": {"ops": list(range(MOST_ENTRIES + 1))}})
    found = tool_answer(0, printed, {}, whole)
    assert found.structured_content["capture"]["ops"] == list(range(MOST_ENTRIES))
    assert str(whole) in found.content[1].text and found.content[2].uri == whole.as_uri()
    assert whole.read_text() == printed


def test_files_that_were_written_are_linked_and_those_that_are_not_there_are_not(tmp_path):
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "artifacts").mkdir()
    document = {"runs": [{"artifact": "artifacts"}, {"artifact": "gone"}, {"artifact": None}]}
    found = list(linked_files(document, {"out": str(tmp_path)}))
    assert found == [tmp_path / "result.json", tmp_path / "artifacts"]
    link = tool_answer(0, json.dumps(document), {"out": str(tmp_path)}, tmp_path / "whole.json").content[1]
    assert (link.uri, link.mime_type, link.size) == (found[0].as_uri(), "application/json", 2)
    saved = tmp_path / "result.json"
    assert list(linked_files({"saved": str(saved)}, {})) == [saved]
    assert list(linked_files({"files": [{"path": str(saved)}]}, {})) == [saved]
