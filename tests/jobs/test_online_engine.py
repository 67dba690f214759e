"""An engine is made of a Python of this machine by its own pip; nothing of it is left if that fails."""

import os
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from ace_studio.jobs import engine_packs, online_engine
from ace_studio.jobs.engine_packs import find_packs, packs_folder, remove
from ace_studio.jobs.online_engine import make_online, python_for_it, requirements
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.hosts import NEEDED


def ignore(_line: str) -> None:
    """What is being done does not matter here."""


BASE = getattr(sys, "_base_executable", sys.executable)


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """No index but a folder with one wheel, as pip's own settings name it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "tiny_part-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_part.py", "x = 1\n")
        wheel.writestr("tiny_part-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-part\nVersion: 1.0\n")
        wheel.writestr(
            "tiny_part-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_part-1.0.dist-info/RECORD", "tiny_part.py,,\n")
    (tmp_path / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))


def test_the_packages_are_those_that_an_engine_needs_and_two_targets():
    assert set(NEEDED.values()) < set(requirements())
    assert {"onnxruntime", "openvino", "nncf"} < {one.partition(">")[0] for one in requirements()}


def test_it_is_a_pack_like_any_other_and_a_second_one_takes_its_place():
    heard = []
    for _ in range(2):
        pack = make_online(BASE, heard.append, wanted=("tiny-part",))
        assert find_packs() == (pack,) and not pack.fault
        assert pack.kind == "online" and pack.packages["tiny-part"] == "1.0"
    code = "import sys, tiny_part; print(sys.prefix, len([p for p in sys.path if '.local' in p]))"
    said = subprocess.run([pack.python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [pack.folder, "0"]
    assert heard[0] == f"Making an environment of {BASE}" and any("tiny" in line for line in heard)
    engine_packs.require_whole(Path(pack.folder))
    remove(pack.name)
    assert find_packs() == ()


def test_what_pip_says_when_it_fails_is_told_and_nothing_is_left():
    with pytest.raises(AceError) as caught:
        make_online(BASE, ignore, wanted=("no-such-part",))
    problem = caught.value.problem
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert "no-such-part" in problem.why and "pip config list" in problem.remedy and "from a file" in problem.remedy
    assert list(packs_folder().iterdir()) == []


def test_cancelling_ends_what_runs_and_leaves_nothing(tmp_path):
    python, asked, begun = tmp_path / "python", threading.Event(), tmp_path / "begun"
    python.write_text(f'#!/bin/sh\ntouch "{begun}"\nsleep 600\n')
    python.chmod(0o755)

    def cancel() -> None:
        while not begun.exists():
            time.sleep(0.01)
        asked.set()

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(AceError) as caught:
        make_online(str(python), ignore, asked.is_set, wanted=())
    assert caught.value.problem.code is ErrorCode.CANCELLED
    assert list(packs_folder().iterdir()) == []


def test_an_interrupt_ends_pip_which_hears_nothing_of_it(tmp_path):
    python, ended = tmp_path / "python", tmp_path / "ended"
    python.write_text(f'#!/bin/sh\necho Collecting torch\nsleep 600\ntouch "{ended}"\n')
    python.chmod(0o755)

    def interrupt(line: str) -> None:
        if line == "Collecting torch":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_online(str(python), interrupt, wanted=())
    assert not ended.exists() and list(packs_folder().iterdir()) == []


def test_without_a_python_that_can_make_an_environment_that_is_said(tmp_path, monkeypatch):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert python_for_it() == ""
    with pytest.raises(AceError, match="No Python was found"):
        make_online("", ignore)
    old.unlink()
    old.symlink_to(BASE)
    assert python_for_it() == str(old)


def test_a_python_that_is_not_there_is_named(tmp_path):
    with pytest.raises(AceError, match="could not be made") as caught:
        make_online(str(tmp_path / "none"), ignore, wanted=())
    assert caught.value.problem.where == str(tmp_path / "none")
    assert list(packs_folder().iterdir()) == []


def test_a_full_disk_is_told_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(online_engine, "missing_room", lambda folder, needed: f"{needed} bytes are needed")
    with pytest.raises(AceError, match="not enough room") as caught:
        make_online(BASE, ignore)
    assert caught.value.problem.code is ErrorCode.SYSTEM
