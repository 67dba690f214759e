"""``devices`` and ``measure``."""

import json

import pytest

from ace_studio.cli import devices_command, run_command
from ace_studio.jobs.devices.measuring import Measured
from ace_studio.records.devices import DeviceCheck
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.results import encode_result
from ace_studio.session.kept.folders import UserFolders
from ace_studio.session.kept.history import History
from tests.jobs.devices.runs import result_of, run_of
from tests.records.results.test_on_devices import figure

LOST = Problem(code=ErrorCode.NOT_INSTALLED, what="openvino is not installed on box", remedy="pip install openvino")


@pytest.fixture(autouse=True)
def own_list(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    result = result_of(run_of(), run_of(precision="int8-static"), run_of("openvino"))
    (folder / "result.json").write_bytes(encode_result(result))
    History.open_default().add(result, recipe_toml="", title="m", output=str(folder))
    return folder


def number_of(folder):
    return str(next(run.id for run in History.open_default().list() if run.output == str(folder)))


@pytest.fixture
def measured(monkeypatch):
    asked = []

    def answer(device, result, folder, *, indices=(), is_trusted, tell, word):
        asked.append((device.name, folder, indices))
        tell({"kind": "waiting", "why": "another measurement runs on box"})
        tell({"kind": "progress", "detail": "round 1 of 3", "fraction": 0.0})
        return Measured(figures={0: figure(4.0), 1: figure(2.0)}, problems={2: LOST} if not indices else {})

    monkeypatch.setattr(devices_command, "measure_on", answer)
    return asked


def test_three_fields_add_a_device(capsys):
    assert run_command(["devices", "add", "box", "user@box", "--python", "~/p"]) == 0
    assert run_command(["devices", "add", "phone", "adb:123", "--json"]) == 0
    capsys.readouterr()
    assert run_command(["devices", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["devices"]
    assert [(one["name"], one["kind"], one["address"], one["python"]) for one in found] == [
        ("here", "local", "here", ""), ("box", "ssh", "user@box", "~/p"), ("phone", "adb", "123", "")
    ]  # fmt: skip
    assert run_command(["devices", "remove", "box"]) == 0
    out = capsys.readouterr().out
    assert "phone" in out and "box" not in out
    assert run_command(["devices", "add", "phone", "x"]) == 2 and run_command(["devices", "remove", "box"]) == 2


def test_the_figures_are_added_and_shown(out, measured, capsys):
    assert run_command(["measure", number_of(out), "--device", "here"]) == LOST.exit_code
    capsys.readouterr()
    assert run_command(["measure", str(out), "--device", "here", "--run", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "ok" and [one["run"] for one in answer["figures"]] == [0, 1]
    assert measured == [("here", out, ()), ("here", out, (1,))]
    assert run_command(["report", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "box: p50 ms" in shown and "2.000 (1.800 - 2.200)" in shown and "2.00x" in shown
    stored = json.loads((out / "result.json").read_text())["runs"]
    assert [len(run["devices"]) for run in stored] == [1, 1, 0] and stored[0]["latency_ms"]["p50"] == 2.0


def test_what_could_not_be_measured_is_told_and_the_rest_is_kept(out, measured, capsys):
    assert run_command(["measure", str(out), "--device", "here", "--json"]) == LOST.exit_code != 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert answer["status"] == "failed" and answer["errors"][0]["what"] == LOST.what and len(answer["figures"]) == 2
    assert "Waiting: another measurement runs on box" in printed.err and "pip install openvino" in printed.err


def test_unknown_devices_and_runs_are_errors(out, capsys):
    assert run_command(["measure", str(out), "--device", "nobody"]) == 2
    assert "There is no device 'nobody' in the list" in capsys.readouterr().err
    assert run_command(["measure", str(out / "none"), "--device", "here"]) == 2
    assert run_command(["measure", "999999", "--device", "here"]) == 2


def test_a_check_shows_what_a_device_has(monkeypatch, capsys):
    found = DeviceCheck(
        name="here", machine="box (X)", version="3.12.1", runtimes={"onnxruntime": "1.2"},
        missing={"openvino": "python -m pip install openvino"}, governor="powersave", temperature_c=41.0, seconds=0.1,
    )  # fmt: skip
    monkeypatch.setattr(devices_command, "check_device", lambda device: found)
    assert run_command(["devices", "check", "here"]) == 0
    shown = capsys.readouterr().out
    assert "governor powersave, 41 °C" in shown and "missing: python -m pip install openvino" in shown
    assert run_command(["devices", "check", "here", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runtimes"] == {"onnxruntime": "1.2"}


def test_a_list_of_devices_that_somebody_else_wrote_starts_nothing_and_steers_no_terminal(out, tmp_path, capsys):
    canary = tmp_path / "canary"
    rows = [
        ("option", "ssh", f"-oProxyCommand=touch {canary}", ""),
        ("command", "ssh", f"box;touch {canary}", ""),
        ("python", "ssh", "-F/dev/null", f"$(touch {canary})"),
        ("serial", "adb", f"$(touch {canary})", ""),
        ("\x1b[2J\ncommand", "ssh", "\x1b]0;x\x07", ""),
    ]
    listed = [dict(zip(("name", "kind", "address", "python"), row, strict=True)) for row in rows]
    path = UserFolders.of_user().devices
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(listed))
    assert run_command(["devices", "list"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    for name, *_ in rows:
        assert run_command(["devices", "check", name]) in (2, 6)
        assert run_command(["measure", str(out), "--device", name]) in (2, 6)
        said = "".join(capsys.readouterr())
        assert "remedy: " in said and "\x1b" not in said
    assert not canary.exists()
