"""A whole journey over the MCP server: the SDK's own client, a real engine, from an untrusted file to an artifact."""

import os
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from ace_studio.cli.agents.server import EXIT_CODE_KEY
from ace_studio.records.safe_file import file_sha256
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.trust import TrustStore

MODEL = '''
"""A small network that prints, and one that branches on its values."""

import torch
from torch import nn

print("the model was imported")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        print("the model was called")
        return self.body(x)


class Branching(Net):
    def forward(self, x):
        y = self.body(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y
'''
RECIPE = """
format = 1
[model]
source = "net.py"
entry = "{entry}"
[[inputs.rows]]
x = {{ shape = [2, 8] }}
[[inputs.rows]]
x = {{ shape = [5, 8] }}
[targets]
names = ["eager"]
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "net.toml").write_text(RECIPE.format(entry="Net"))
    (tmp_path / "branching.toml").write_text(RECIPE.format(entry="Branching"))
    return tmp_path


def serve(folder, calls, forked_engines):
    """Run ``calls(client)`` against a server of its own, of a user who trusts nothing yet."""
    user = {f"XDG_{name}_HOME": str(folder / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    command, *args = forked_engines.command("mcp")
    server = StdioServerParameters(command=command, args=args, env={**os.environ, **user}, cwd=folder)

    async def main():
        with anyio.fail_after(250):
            async with Client(server) as client:
                await calls(client)

    anyio.run(main)


def trust(folder):
    """What the window does when the user presses Trust."""
    data = folder / "DATA" / UserFolders.of_user().data.name
    TrustStore(UserFolders(config=data, data=data, state=data).trust).trust(
        str(folder / "net.py"), file_sha256(folder / "net.py")
    )


def linked(found):
    return [Path(one.uri.removeprefix("file://")) for one in found.content if one.type == "resource_link"]


def test_an_agent_opens_traces_explains_plans_runs_compares_and_exports(folder, forked_engines):
    recipe, told = str(folder / "net.toml"), []

    async def hear(progress, total, message):
        told.append(message)

    async def calls(client):
        async def call(name, **values):
            found = await client.call_tool(name, values, progress_callback=hear)
            assert not found.is_error, found.content[0].text
            return found

        opened = (await call("inspect", path=str(folder / "net.py"))).structured_content
        assert opened["trust"] == "code" and {one["name"] for one in opened["entries"]} == {"Net", "Branching"}

        refused = await client.call_tool("trace", {"path": recipe})
        assert refused.is_error and refused.meta[EXIT_CODE_KEY] == 5
        (problem,) = refused.structured_content["errors"]
        assert problem["where"] == str(folder / "net.py") and "opening it would run" in problem["why"]
        assert f"ace-studio trust --add {recipe}" in problem["remedy"]
        trust(folder)

        traced = (await call("trace", path=recipe)).structured_content
        assert traced["capture"]["rung"] == "export" and not traced["capture"]["graph_breaks"]

        broken = (await call("trace", path=str(folder / "branching.toml"))).structured_content
        assert broken["capture"]["rung"] == "partial"
        (stop, *_) = broken["capture"]["graph_breaks"]
        explained = await call("fix", path=str(folder / "branching.toml"), at=f"{stop['file']}:{stop['line']}")
        assert any(one["status"] == "green" for one in explained.structured_content["fixes"])

        planned = await call("plan", path=recipe, set=["plan.default=int8-weight"], save=str(folder / "int8.toml"))
        assert {one["planned"] for one in planned.structured_content["ops"]} == {"int8-weight"}
        assert linked(planned) == [folder / "int8.toml"]

        for name in ("net", "int8"):
            ran = await call("run", path=str(folder / f"{name}.toml"), out=str(folder / f"out-{name}"))
            assert ran.structured_content["status"] == "ok"
            assert folder / f"out-{name}" / "result.json" in linked(ran)
        assert any(path.name == "model.pt2" for path in linked(ran))

        compared = await call("compare", first=str(folder / "out-net"), second=str(folder / "out-int8"))
        assert any("int8-weight" in row["name"] for row in compared.structured_content["repeats"]["rows"])
        exported = await call("export", folder=str(folder / "out-int8"), to=str(folder / "copy"))
        assert exported.structured_content["files"] and all(path.exists() for path in linked(exported))

        async with anyio.create_task_group() as group:

            async def stop_soon(progress, total, message):
                if message.startswith("Capturing the graph"):
                    group.cancel_scope.cancel()

            stopped = {"path": recipe, "out": str(folder / "out-stopped")}
            await client.call_tool("run", stopped, progress_callback=stop_soon)
        assert group.cancel_scope.cancelled_caught
        assert len((await call("history")).content[0].text) > 100

    serve(folder, calls, forked_engines)
    for phase in ("Capturing the graph", "Trying a fix", "Measuring latency", "Saving and verifying"):
        assert any(message.startswith(phase) for message in told), phase
