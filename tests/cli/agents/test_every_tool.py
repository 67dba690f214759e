"""Every tool is called by a real client with every argument of its schema; and what a hostile one tries."""

import json
import sys
import threading

import anyio
import pytest
from mcp import Client
from msgspec.structs import replace

from ace_studio.cli import devices_command
from ace_studio.cli.agents import runner as runner_module
from ace_studio.cli.agents.runner import AgentRunner
from ace_studio.cli.agents.server import agent_server
from ace_studio.cli.agents.tools import REPLACE, ROWS, tool_schema
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.devices.measuring import Measured
from ace_studio.records import messages, sweeps
from ace_studio.records.fixes import FixStatus
from ace_studio.records.results import CaptureReport, decode_result, encode_result
from ace_studio.records.roots import Roots
from ace_studio.records.values import OpValues
from ace_studio.session import artifacts
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from ace_studio.session.kept.trust import TrustStore
from tests.cli.fake_engine import result
from tests.cli.test_advise_command import FAST
from tests.cli.test_fix_command import PATCH, SOURCE, control_fix, fix
from tests.cli.test_plan_command import GRAPH
from tests.cli.test_prune_command import REPORT
from tests.records.results.test_on_devices import figure

ROW = {row.name: row for row in ROWS}
CAPTURED = messages.ModelCaptured(
    fingerprint="f", capture=CaptureReport(rung="export", ops=2, seconds=0.1), graph=GRAPH
)
FILE = messages.FileReport(path="m", kind="python", label="Python", sha256="ab", size_bytes=3, trust="code")


@pytest.fixture
def home(tmp_path):
    """A home with secrets, and the folder ``work`` in it that is open to tools."""
    folder = (tmp_path / "home" / "work").resolve()
    folder.mkdir(parents=True)
    (folder.parent / ".ssh").mkdir()
    (folder.parent / ".ssh" / "id_rsa").write_text("SECRET KEY\n")
    (folder.parent / ".bashrc").write_text("mine\n")
    (folder / "recipe.toml").write_text('format = 1\n[model]\nsource = "net.py"\nentry = "make"\n')
    (folder / "net.py").write_text(SOURCE)
    (folder / "sweep.toml").write_text('format = 1\nrecipes = ["recipe.toml"]\n')
    return folder.parent


@pytest.fixture
def work(home):
    return home / "work"


class Scripted:
    """An engine that answers every request, and remembers it."""

    def __init__(self, work):
        self.requests = []
        self._recipe = work / "recipe.toml"
        caught = messages.InputsCaught(path=str(work / "caught" / "inputs.json"), module="Net", seen=9, kept=2)
        values = OpValues(op_id="conv", precision="fp32", example=0, examples=2, tensors=())
        fixes = (fix(self._recipe, FixStatus.GREEN, patch=PATCH), control_fix(self._recipe))
        found = messages.SensitivityFound(fingerprint="f", ops=(), samples_done=2, samples=2, forwards=3.0)
        environment = messages.EnvironmentReport(
            python="3", executable="p", platform="l", cpu="c", cores=2, memory_bytes=1, versions={}
        )
        self._answers = {
            messages.InspectRequest: (messages.FileInspected(report=FILE),),
            messages.DoctorRequest: (messages.EnvironmentFound(report=environment),),
            messages.TraceRequest: (CAPTURED,),
            messages.FixRequest: tuple(messages.FixTried(fix=one) for one in fixes),
            messages.SensitivityRequest: (CAPTURED, found),
            messages.ValuesRequest: (messages.ValuesFound(values=values, fingerprint="f"),),
            messages.PrunePreviewRequest: (messages.PruningPreviewed(report=REPORT),),
            messages.CatchRequest: (caught,),
        }

    def run(self, request):
        self.requests.append(request)
        answers = self._answers.get(type(request), ())
        yield from (replace(one, job=request.job) for one in answers)
        made = result() if isinstance(request, messages.RunRequest) else None
        yield messages.JobFinished(job=request.job, result=made)

    def close(self):
        pass


class FakeSweep:
    """A sweep of one job that is done."""

    def __init__(self, order, on_event):
        row = sweeps.SweepRow(job="1", recipe="a.toml", axes={}, status=sweeps.RowStatus.DONE)
        on_event(sweeps.SweepEnded(report=sweeps.SweepReport(status=sweeps.SweepStatus.OK, rows=(row,))))


@pytest.fixture
def engine(work):
    return Scripted(work)


@pytest.fixture
def call(home, work, engine, monkeypatch):
    """Calls tools, each with its arguments, through a client; returns their answers."""
    monkeypatch.setattr(runner_module, "SweepProcess", FakeSweep)
    monkeypatch.setattr(
        devices_command, "measure_on", lambda *words, **values: Measured(figures={0: figure(4.0)}, problems={})
    )

    def run(*calls):
        user = UserFolders.inside(home / "work" / "ace")
        runner = AgentRunner(TrustStore(user.trust), WorkerClient, Roots(write=(work,), own=user.own))
        runner._executor = engine
        answers = []

        async def main():
            with agent_server(runner) as server, anyio.fail_after(60):
                async with Client(server) as client:
                    for tool, values in calls:
                        answers.append(await client.call_tool(tool, values))

        anyio.run(main)
        return answers

    return run


def write_run(folder, artifact="artifacts/net.pt2", content=b"program"):
    (folder / artifact).parent.mkdir(parents=True)
    (folder / artifact).write_bytes(content)
    run = replace(result().runs[0], artifact=artifact)
    made = replace(result(), runs=(run,), advice=(FAST,), recipe=(folder.parent / "recipe.toml").read_text())
    (folder / "result.json").write_bytes(encode_result(replace(made, folder=str(folder.parent))))
    return folder


def arguments(tool, work):
    """Every argument of a tool; of two that exclude each other, one."""
    given = {
        "path": str(work / "recipe.toml"), "paths": [str(work / "sweep.toml")], "script": str(work / "net.py"),
        "folder": str(work / "run"), "first": str(work / "run"), "second": str(work / "run"), "model":
        str(work / "net.py"), "entry": "make", "input": ["x=1x3"], "set": ["measure.threads=2"], "at": "net.py:2",
        "compare_rungs": True, "batch_only": True, "no_cache": True, "apply_controls": True, "write_source": True,
        "save": str(work / "new.toml"), "save_patch": str(work / "new.patch"), "precision": ["int8-static"],
        "op": "conv", "example": 0, "target": "eager", "method": "n:m", "amount": 0.5, "module": "Net", "calls": 3,
        "arguments": ["--steps"], "out": str(work / "out"), "recipe": str(work / "recipe.toml"),
        "shapes_from": "data", "workers": 1, "device": "here", "index": 0, "apply": 1, "done": True,
        "to": str(work / "copy.pt2"), "run": 0, "name": "recommender",
    }  # fmt: skip
    values = {name: given[name] for name in tool_schema(ROW[tool])["properties"] if name in given}
    match tool:
        case "measure":
            values |= {"run": str(work / "run"), REPLACE: [str(work / "run" / "result.json")]}
        case "fix" | "catch":
            values[REPLACE] = [str(work / "recipe.toml"), str(work / "net.py")]
        case "run" | "sweep" | "advise" | "export" | "plan":
            values[REPLACE] = [str(work / "nothing")]
    return values


@pytest.mark.parametrize("tool", ROW)
def test_every_tool_is_called_with_every_argument_of_its_schema(tool, work, call, engine):
    write_run(work / "run")
    values = arguments(tool, work)
    assert set(tool_schema(ROW[tool])["properties"]) - set(values) <= {"repeat"}
    (answer,) = call((tool, values))
    assert not answer.is_error, answer.content[0].text
    if tool == "run":
        kept = decode_result((work / "run" / "result.json").read_bytes())
        History.open_default().add(kept, recipe_toml=kept.recipe, title="mine", folder=kept.folder)
        (answer,) = call((tool, {"repeat": str(work / "run"), "out": str(work / "again")}))
        assert not answer.is_error, answer.content[0].text


def told(answer):
    assert answer.is_error
    return json.dumps(answer.structured_content)


@pytest.mark.parametrize(
    ("artifact", "to"),
    [
        ("artifacts/authorized_keys", "../.ssh/authorized_keys"),
        ("artifacts/x", "../.bashrc"),
        ("artifacts/sitecustomize.py", "sitecustomize.py"),
        ("artifacts/sitecustomize.py", "."),
        ("artifacts/.bashrc", "."),
        ("artifacts/x", ".git/hooks/post-commit"),
        ("artifacts/x", "ace/data/trusted.json"),
        ("artifacts/x.toml", "recipe.toml"),
        ("artifacts/recipe.toml", "."),
        ("artifacts/x", "out/of/../../../beside"),
        ("artifacts/x", "link/authorized_keys"),
    ],
)
def test_export_puts_a_strangers_bytes_on_nothing(artifact, to, home, work, call):
    write_run(work / "run", artifact, b"STRANGE")
    (work / "link").symlink_to(home / ".ssh")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    (answer,) = call(("export", {"folder": str(work / "run"), "to": str(work / to)}))
    assert "No tool" in told(answer)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_folder_is_exported_with_its_code_but_not_as_a_module_of_python(work, call):
    run = write_run(work / "run", "artifacts/net/run_pieces.py")
    made = decode_result((run / "result.json").read_bytes())
    made = replace(made, runs=(replace(made.runs[0], artifact="artifacts/net"),))
    (run / "result.json").write_bytes(encode_result(made))
    values = {"folder": str(run), "to": str(work / "copy")}
    (answer,) = call(("export", values))
    assert not answer.is_error and (work / "copy" / "run_pieces.py").is_file()
    for name in ("__init__.py", "deep/.bashrc"):
        (run / "artifacts" / "net" / "deep").mkdir(exist_ok=True)
        (run / "artifacts" / "net" / name).write_text("STRANGE")
        (answer,) = call(("export", values | {"to": str(work / "torch")}))
        assert "No tool" in told(answer) and not (work / "torch").exists()
        (run / "artifacts" / "net" / name).unlink()


def test_export_replaces_what_is_listed_and_nothing_more(work, call):
    write_run(work / "run")
    (work / "copy.pt2").write_bytes(b"old")
    (work / "copy.pt2.sha256").write_bytes(b"old sum")
    values = {"folder": str(work / "run"), "to": str(work / "copy.pt2")}
    first, second = call(
        ("export", values | {REPLACE: [values["to"]]}),
        ("export", values | {REPLACE: [values["to"], values["to"] + ".sha256"]}),
    )
    assert "copy.pt2.sha256" in told(first) and not second.is_error
    assert (work / "copy.pt2").read_bytes() == b"program"


def test_export_does_not_follow_links_of_a_stranger_s_folder(home, work, call):
    write_run(work / "run", "artifacts/net.xml")
    (work / "run" / "artifacts" / "net.bin").symlink_to(home / ".ssh" / "id_rsa")
    (answer,) = call(("export", {"folder": str(work / "run"), "to": str(work / "copy.xml")}))
    assert "leads out of the artifact's folder" in told(answer) and not (work / "copy.bin").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a link is looked for once")
@pytest.mark.parametrize("moment", ["_check_places", "_copied"])
def test_a_folder_that_is_swapped_for_a_link_after_it_was_judged_gets_nothing(moment, home, work, call, monkeypatch):
    write_run(work / "run")
    (work / "place").mkdir()
    done = threading.Event()

    def swap():
        (work / "place").rename(work / "old")
        (work / "place").symlink_to(home / ".ssh")
        done.set()

    original = getattr(artifacts, moment)

    def swap_then(*values, **options):
        if moment == "_copied":
            threading.Thread(target=swap).start()
            assert done.wait(10)
        found = original(*values, **options)
        if not done.is_set():
            threading.Thread(target=swap).start()
            assert done.wait(10)
        return found

    monkeypatch.setattr(artifacts, moment, swap_then)
    (answer,) = call(("export", {"folder": str(work / "run"), "to": str(work / "place" / "authorized_keys")}))
    assert answer.is_error
    assert [one.name for one in (home / ".ssh").iterdir()] == ["id_rsa"]


@pytest.mark.parametrize(
    ("tool", "values"),
    [
        ("run", {"path": "recipe.toml", "out": "ace/data"}),
        ("run", {"path": "recipe.toml", "out": "../.config/autostart"}),
        ("run", {"path": "recipe.toml", "out": "."}),
        ("sweep", {"paths": ["sweep.toml"], "out": "ace/data"}),
        ("catch", {"script": "net.py", "out": "../.ssh"}),
        ("catch", {"script": "net.py", "out": "new", "recipe": "recipe.toml"}),
        ("catch", {"script": "net.py", "out": "there.safetensors"}),
        ("plan", {"path": "recipe.toml", "save": "recipe.toml"}),
        ("plan", {"path": "recipe.toml", "save": ".hidden.toml"}),
        ("fix", {"path": "recipe.toml", "apply_controls": True}),
        ("fix", {"path": "recipe.toml", "write_source": True}),
        ("fix", {"path": "recipe.toml", "save_patch": "../x.patch"}),
        ("advise", {"folder": "run", "apply": 1, "out": "ace/data"}),
        ("measure", {"run": "run", "device": "here"}),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, dict) else one,
)
def test_no_tool_writes_over_what_is_there_or_into_what_is_not_for_it(tool, values, home, work, call):
    write_run(work / "run")
    (work / "ace" / "data").mkdir(parents=True)
    (work / "there.json").write_text("mine")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    given = {
        name: [str(work / one) for one in value]
        if isinstance(value, list)
        else str(work / value)
        if isinstance(value, str) and name != "device"
        else value
        for name, value in values.items()
    }
    (answer,) = call((tool, given))
    assert "No tool" in told(answer)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("tool", "name"), [("sweep", "paths"), ("advise", "folder"), ("trace", "path"), ("report", "folder")]
)
def test_no_error_quotes_a_file_that_is_not_for_tools(tool, name, home, work, call):
    (home / ".netrc").write_text("SECRET = not toml\n")
    (work / "key.toml").symlink_to(home / ".netrc")
    (work / "fake").mkdir()
    (work / "fake" / "result.json").symlink_to(home / ".ssh" / "id_rsa")
    places = [work / "fake"] if name == "folder" else [home / ".netrc", work / "key.toml", home / ".ssh" / "id_rsa"]
    for place in places:
        (answer,) = call((tool, {name: [str(place)] if name == "paths" else str(place)}))
        assert "No tool may read" in told(answer) and "SECRET" not in told(answer)


def test_no_figures_are_measured_with_inputs_that_are_not_for_tools(home, work, call):
    run = write_run(work / "run")
    (run / "artifacts" / "inputs.safetensors").symlink_to(home / ".ssh" / "id_rsa")
    values = {"run": str(run), "device": "here", REPLACE: [str(run / "result.json")]}
    (answer,) = call(("measure", values))
    assert "No tool may read" in told(answer)


def test_a_sweep_quotes_no_recipe_that_is_not_for_tools(home, work, call):
    (work / "sweep.toml").write_text('format = 1\nrecipes = ["../.ssh/id_rsa"]\n')
    (answer,) = call(("sweep", {"paths": [str(work / "sweep.toml")], "out": str(work / "out")}))
    assert "No tool may read" in told(answer) and "SECRET" not in told(answer)
