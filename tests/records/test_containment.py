"""A contained process writes only below its folders and has no network, and says so when that is what failed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ace_studio.records import containment

needs_containment = pytest.mark.skipif(not containment.available()[0], reason=containment.available()[1])
PROBE = """
import os, socket, subprocess, sys
from pathlib import Path
from ace_studio.records import containment
containment.contain([sys.argv[1]])
outside = Path(sys.argv[2])
def connect(): socket.create_connection(("127.0.0.1", int(sys.argv[3])))
for attempt in (
    lambda: Path(sys.argv[1], "inside").write_text("x"),
    lambda: Path(os.devnull).write_text("x"),
    lambda: outside.write_text("x"),
    lambda: os.truncate(sys.argv[4], 0),
    connect,
    lambda: os.kill(os.getppid(), 0),
    lambda: subprocess.run(["sh", "-c", f"echo x > {outside}"], check=True, stderr=subprocess.DEVNULL),
    lambda: Path(sys.argv[1], "missing").read_text(),
):
    try:
        attempt()
        print("done")
    except Exception as error:
        print((containment.refusal(error) or ["not refused"])[0].partition(",")[0])
"""


@needs_containment
def test_writes_outside_connections_signals_and_children_are_refused_with_the_reason(tmp_path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    outside = tmp_path / "outside"
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [str(tmp_path / "folder"), str(outside), str(server.getsockname()[1]), str(kept)]
        command = [sys.executable, "-c", PROBE, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout.splitlines() == [
        "done",
        "done",
        f"the code would change {outside}",
        f"the code would change {kept}",
        "the code asked for the network",
        "the code signalled a process",
        "a program that the code started failed",
        "not refused",
    ]
    assert kept.read_text() == "mine"
    assert not outside.exists()


def test_outside_of_containment_nothing_is_called_refused() -> None:
    assert containment.refusal(PermissionError(13, "Permission denied", "/etc/shadow")) is None


def test_a_file_that_nobody_may_write_is_not_called_refused_by_containment(monkeypatch) -> None:
    monkeypatch.setenv(containment.VARIABLE, "/somewhere")
    monkeypatch.setattr(containment.os, "access", lambda *_: False)
    assert containment.refusal(PermissionError(13, "Permission denied", "/etc/shadow")) is None


def test_another_system_has_no_containment_and_says_why(monkeypatch) -> None:
    monkeypatch.setattr(containment.sys, "platform", "darwin")
    assert containment.available.__wrapped__() == (False, "containment needs Linux; this is darwin")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(containment.__file__).parents[2])}


def test_a_strangers_file_is_known_by_its_folder_its_mark_and_its_owner(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(containment.Path, "home", lambda: tmp_path)
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/user-dirs.dirs").write_text('# comment\nXDG_DOWNLOAD_DIR="$HOME/Geladenes"\n')
    (tmp_path / "Geladenes/model").mkdir(parents=True)
    own = tmp_path / "net.py"
    own.touch()
    (tmp_path / "Geladenes/model/net.py").touch()
    assert containment.from_elsewhere(own) == ""
    assert containment.from_elsewhere(tmp_path / "Geladenes/timm:resnet18") == "", "a model of a package"
    for each in ("Geladenes/model/net.py", "Geladenes/model"):
        assert containment.from_elsewhere(tmp_path / each) == "it lies among downloads"
    monkeypatch.setattr(containment.os, "geteuid", lambda: 54321)
    monkeypatch.setattr(
        containment.Path, "stat", lambda *_, **__: os.stat_result((0o100644, 1, 1, 1, 12345, 0, 0, 0, 0, 0))
    )
    assert containment.from_elsewhere(own) == "it belongs to another user"
    monkeypatch.setattr(containment.os, "geteuid", lambda: 0)
    monkeypatch.setattr(containment.os, "getxattr", lambda *_: b"https://example.org/net.py", raising=False)
    assert containment.from_elsewhere(own) == "it was downloaded from https://example.org/net.py"
