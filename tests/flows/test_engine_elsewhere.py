"""The command line and the real engine in a Python of its own behind a real SSH server, and what goes wrong there."""

import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ace_studio.cli import run_command
from ace_studio.jobs.engines import EngineClient
from ace_studio.jobs.hosts.ssh import SSH_VARIABLE
from ace_studio.jobs.hosts.transport import engine_source
from ace_studio.records.messages import (
    AnyEvent,
    JobCancelled,
    JobFinished,
    LogLine,
    ModelCaptured,
    Progress,
    TraceRequest,
)
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.recipe import ModelChoice
from ace_studio.records.sending import Word
from tests.jobs.hosts.linking import follow
from tests.jobs.hosts.ssh_host import HOST, SshHost, make_key, needs_ssh, ssh_host

pytestmark = needs_ssh
MODEL = """
import time
from pathlib import Path
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 4)
        self.body.load_state_dict(torch.load(Path(__file__).with_name("weights.pt"), weights_only=True))
    def forward(self, x):
        return self.body(x).relu()

def make_model():
    return Net()

def make_when_the_gate_opens():
    gate = Path({gate!r})
    gate.with_name("begun").touch()
    while not gate.exists():
        time.sleep(0.02)
    return Net()

def tracing_inputs():
    return [(torch.ones(2, 8),), (torch.ones(5, 8),)]
"""
RECIPE = """
format = 1
[model]
source = "model.py"
entry = "make_model"
[inputs]
tracing = "tracing_inputs"
[plan]
default = "fp32"
[measure]
rounds = 3
profile = false
[targets]
names = ["eager"]
[engine]
host = "{host}"
python = "{python}"
"""


@pytest.fixture(scope="module")
def python_there(tmp_path_factory) -> str:
    """The Python of another environment, which has the packages of this one."""
    folder = tmp_path_factory.mktemp("there") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
    sites = subprocess.run([python, "-c", purelib], capture_output=True, text=True, check=True).stdout.strip()
    Path(sites, "packages-of-the-tests.pth").write_text(sysconfig.get_path("purelib"))
    return str(python)


@pytest.fixture
def host(tmp_path, monkeypatch) -> Iterator[SshHost]:
    with ssh_host(tmp_path / "host") as made:
        monkeypatch.setenv(SSH_VARIABLE, made.command)
        yield made


@pytest.fixture
def recipe(tmp_path, python_there) -> Path:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL.format(gate=str(tmp_path / "gate")))
    (folder / "recipe.toml").write_text(RECIPE.format(host=HOST, python=python_there))
    return folder / "recipe.toml"


def with_weights(recipe: Path) -> Path:
    import torch

    torch.save(torch.nn.Linear(8, 4).state_dict(), recipe.with_name("weights.pt"))
    return recipe


@pytest.mark.slow
def test_a_recipe_is_traced_and_run_by_another_python_on_the_host_that_it_names(
    recipe, host, python_there, tmp_path, capsys
):
    with_weights(recipe)
    out = tmp_path / "out"
    for words in ([], ["--trust"], ["--host", HOST]):  # nothing is sent without trust, and without a word for the host
        assert run_command(["trace", str(recipe), "--json", *words]) == 5
    assert not host.commands
    capsys.readouterr()

    assert run_command(["doctor", "--host", HOST, "--python", python_there, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["executable"] == python_there != sys.executable

    assert run_command(["trace", str(recipe), "--trust", "--host", HOST, "--json"]) == 0
    traced = json.loads(capsys.readouterr().out)
    assert traced["status"] == "ok" and traced["capture"]["ops"] > 0

    assert run_command(["run", str(recipe), "--out", str(out), "--trust", "--host", HOST, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "ok" and said["folder"] == str(recipe.parent)
    assert json.loads((out / "result.json").read_text())["folder"] == str(recipe.parent)
    assert (out / "report.html").is_file() and str(host.home) not in (out / "result.json").read_text()
    ran = [run for run in said["runs"] if run["verified"]]
    assert ran and (out / ran[0]["artifact"]).exists()


@pytest.mark.slow
def test_a_cut_connection_is_resumed_by_the_real_engine_and_its_jobs_can_be_cancelled(recipe, host, tmp_path):
    with_weights(recipe)
    found, begun = read_recipe(recipe), tmp_path / "begun"
    waiting = ModelChoice(source="model.py", entry="make_when_the_gate_opens")
    client = EngineClient(is_lazy=True)

    def ask(job: str) -> list[AnyEvent]:
        """Send a trace, wait until the model is being made, and return what came meanwhile."""
        asked, word = replace(found, model=waiting), Word(hosts=(HOST,))
        client.send(TraceRequest(job=job, recipe=asked, folder=str(recipe.parent), trust_all=True, word=word))
        until, came = time.monotonic() + 120, []
        while not begun.exists() and time.monotonic() < until:
            came.append(client.next_event(0.05))
        begun.unlink()
        return [event for event in came if event is not None]

    try:
        ask("resumed")
        host.cut()
        while "was lost; the job goes on there" not in follow(client, LogLine)[-1].text:
            pass
        (tmp_path / "gate").touch()
        events = follow(client, within_s=120)
        assert isinstance(events[-1], JobFinished) and any("stands again" in getattr(one, "text", "") for one in events)
        assert [one.capture.ops > 0 for one in events if isinstance(one, ModelCaptured)] == [True]

        again = [*ask("again"), *follow(client, within_s=120)]
        assert isinstance(again[-1], JobFinished)
        assert any(isinstance(one, Progress) and "from the cache" in one.detail for one in again)
        (tmp_path / "gate").unlink()

        ask("cancelled")
        client.cancel("cancelled", grace_s=0.5)
        assert isinstance(follow(client, within_s=60)[-1], JobCancelled)
    finally:
        client.close()
    assert client.pid is None  # no engine was started here


def test_a_wrong_key_is_refused_and_nothing_runs_there(recipe, host, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(SSH_VARIABLE, host.ssh_with(identity=str(make_key(tmp_path / "other"))))
    for words in (["trace", str(recipe), "--trust", "--host", HOST], ["doctor", "--host", HOST]):
        assert run_command([*words, "--json"]) != 0
        error = json.loads(capsys.readouterr().out)["error"]
        assert (
            error["code"] == "host" and error["what"] == f"{HOST} refused the key" and "ssh-copy-id" in error["remedy"]
        )
    assert not host.commands


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """A file system of this size in a folder, where the system lets us make one."""
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root of Linux makes a small disk; tests/jobs/hosts/test_link.py limits files instead")
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_full_there_is_told_before_and_during_a_job(recipe, host, python_there, capsys):
    recipe.with_name("weights.pt").write_bytes(os.urandom(8_000_000))
    with small_disk(host.home / ".cache" / "ace-studio", len(engine_source().archive) + 4_000_000):
        assert run_command(["engine", "host", "check", HOST, "--python", python_there, "--json"]) != 0
        (problem,) = json.loads(capsys.readouterr().out)["problems"]
        assert problem["code"] == "system" and problem["what"] == f"The disk of {HOST} is nearly full"
        assert run_command(["trace", str(recipe), "--trust", "--host", HOST, "--json"]) != 0
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "system" and error["what"].startswith("The disk is full on ")
        assert "XDG_CACHE_HOME" in error["remedy"]
