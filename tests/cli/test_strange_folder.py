"""A command that is started in a stranger's folder imports and starts nothing that lies there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.cli import run_command
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.hosts.ssh import FIRST_WORDS
from ace_studio.records.results import encode_result
from tests.jobs.devices.runs import write_run

PACKAGES = (
    "ace_studio", "click", "dask", "distributed", "filelock", "jinja2", "msgspec", "networkx", "numpy", "onnx",
    "onnxruntime", "platformdirs", "psutil", "rich", "sitecustomize", "sympy", "torch", "typer", "usercustomize",
)  # fmt: skip
PROGRAMS = ("adb", "bin/python", "cc", "g++", "git", "lscpu", "nvidia-smi", "python3", "ssh", ".venv/bin/python")


@pytest.fixture
def ran(tmp_path, monkeypatch) -> Path:
    """What the payloads of the current folder write to: one for every name that may be imported or started."""
    mark, here = tmp_path / "ran", tmp_path / "gift"
    payload = f"open({str(mark)!r}, 'a').write(__name__ + '\\n')\n"
    names = (*PACKAGES, *(name for name in sys.stdlib_module_names if not name.startswith("_")))
    files = {f"{name}.py": payload for name in names} | {"any.pth": f"import os; {payload}"}
    files |= dict.fromkeys(PROGRAMS, f"#!/bin/sh\necho $0 >> {mark}\n")
    for name, content in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(content)
        (here / name).chmod(0o755)
    monkeypatch.chdir(here)
    subprocess.run([sys.executable, "-c", "import json"], check=False, capture_output=True)
    assert mark.read_text().startswith("json\n"), "else the payloads prove nothing"
    mark.unlink()
    return mark


def test_neither_the_command_nor_its_engine_nor_the_look_at_a_python_imports_from_there(ran, tmp_path, root):
    command = tmp_path / "ace-studio"  # as pip makes it
    command.write_text("import sys\nfrom ace_studio.__main__ import main\nsys.exit(main())\n")
    handlers = str(root / "tests/jobs/hosts/host_engine.py")  # the engine starts as ever, and imports no torch then
    environment = {**os.environ, "PYTHONPATH": str(root), HANDLERS_VARIABLE: handlers}
    words = [sys.executable, str(command), "doctor"]
    ended = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("words", [["devices", "check", "here"], ["measure", "run", "--device", "here"]])
def test_what_measures_imports_nothing_from_there(words, ran):
    pytest.importorskip("onnxruntime")
    Path("run/result.json").parent.mkdir()
    Path("run/result.json").write_bytes(encode_result(write_run(Path("run"), "fp32")))
    code = run_command(words)
    assert not ran.exists(), ran.read_text()
    assert code == 0


@pytest.mark.slow
def test_neither_a_sweep_nor_its_workers_import_from_there(ran, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setenv(HANDLERS_VARIABLE, str(Path(__file__).parents[1] / "sweeps" / "fake_jobs.py"))
    Path("model.py").write_text("")
    Path("a.toml").write_text('format = 1\n[model]\nsource = "model.py"\nentry = "ok"\n')
    code = run_command(["sweep", "a.toml", "--out", "swept", "--workers", "1", "--trust"])
    assert not ran.exists(), ran.read_text()
    assert code == 0


def test_a_python_that_knows_no_safe_path_takes_its_program_without_the_folder(ran):
    program = b"import json, hashlib"
    words = [sys.executable, "-c", FIRST_WORDS]
    assert subprocess.run(words, input=b"%d\n%s" % (len(program), program), check=False).returncode == 0
    assert not ran.exists(), ran.read_text()
