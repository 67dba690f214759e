"""Every worker has a temporary folder of its own, which is gone when the worker is, however it ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import WorkerLost, WorkerReady
from ace_studio.records.private_folder import LIBRARY_CACHES
from ace_studio.records.scratch import make_scratch, remove_scratch
from tests.other_users import as_root, folder_of_everybody, give_away

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
    pytest.mark.usefixtures("fake_engine"),
]


def _folders(base: Path) -> list[Path]:
    return sorted(base.glob("ace-w*"))


def _wait_for(client: WorkerClient, kind: type) -> object:
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        if isinstance(event := client.next_event(1.0), kind):
            return event
    raise AssertionError(f"no {kind.__name__}")


def _wait_until_empty(base: Path) -> None:
    deadline_s = time.monotonic() + 10
    while _folders(base) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert _folders(base) == []


@pytest.mark.parametrize("end", ["close", "kill -9"])
def test_the_folder_is_gone_however_the_worker_ended(tmp_path, end):
    client = WorkerClient(environment={"TMPDIR": str(tmp_path)})
    client.start()
    _wait_for(client, WorkerReady)
    (folder,) = _folders(tmp_path)
    assert client.pid is not None
    environment = Path(f"/proc/{client.pid}/environ").read_bytes().split(b"\0")
    assert f"TMPDIR={folder}".encode() in environment
    (folder / "deep").mkdir()
    (folder / "deep" / "left").write_bytes(b"half")
    if end == "kill -9":
        os.kill(client.pid, signal.SIGKILL)
        _wait_for(client, WorkerLost)
    client.close()
    assert _folders(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_compiled_code_goes_to_the_folder_of_the_worker_if_its_own_takes_no_files(tmp_path, place):
    (tmp_path / "file").write_text("x")
    kept = tmp_path / "kept"
    named = {"TMPDIR": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(kept)}
    assert make_scratch(named)[1]["TORCHINDUCTOR_CACHE_DIR"] == str(kept)
    scratch, variables = make_scratch(named | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / place)})
    assert variables["TORCHINDUCTOR_CACHE_DIR"].startswith(str(scratch))


def test_compiled_code_goes_there_too_if_its_own_folder_takes_names_but_no_contents(tmp_path):
    import resource

    named = {"TMPDIR": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "kept")}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # as a disk that is nearly full
    try:
        scratch, variables = make_scratch(named)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert variables["TORCHINDUCTOR_CACHE_DIR"].startswith(str(scratch))


PARENT = """
import os, sys, time
from ace_studio.jobs.client import WorkerClient
from ace_studio.records.messages import WorkerReady
client = WorkerClient(environment={"TMPDIR": sys.argv[1]})
client.start()
while not isinstance(client.next_event(30), WorkerReady):
    pass
print("ready", flush=True)
time.sleep(60)
"""


def test_the_folder_is_gone_when_the_parent_was_killed(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"ready\n"
    assert len(_folders(tmp_path)) == 1
    parent.kill()
    parent.wait()
    _wait_until_empty(tmp_path)


def test_the_next_start_removes_folders_of_processes_that_are_gone_and_no_others(tmp_path):
    environment = {"TMPDIR": str(tmp_path)}
    mine, _ = make_scratch(environment)
    pid, start, namespace = mine.name.removeprefix("ace-w").partition("-")[0].split(".")
    used_again = tmp_path / f"ace-w{pid}.{int(start) - 1}.{namespace}-aaaaaaaa"
    elsewhere = tmp_path / f"ace-w{2**22 + 1}.1.{int(namespace) + 1}-aaaaaaaa"
    gone = tmp_path / f"ace-w{2**22 + 1}.1.{namespace}-aaaaaaaa"
    strange = tmp_path / "ace-weather-forecast"
    for folder in (used_again, elsewhere, gone, strange):
        folder.mkdir()
    second, _ = make_scratch(environment)
    assert _folders(tmp_path) == sorted([mine, second, elsewhere, strange])


def test_what_libraries_keep_in_the_temporary_folder_stays_where_it_was(tmp_path, monkeypatch):
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir  # noqa: TID251 - the name that must be met

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    scratch, variables = make_scratch({})
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == default_cache_dir()
    mine = str(tmp_path / "mine")
    assert make_scratch({"TORCHINDUCTOR_CACHE_DIR": mine})[1]["TORCHINDUCTOR_CACHE_DIR"] == mine
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert scratch.parent == tmp_path


def _compiled_by_default(base: Path, monkeypatch) -> Path:
    """The folder that torch takes of itself."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir  # noqa: TID251 - the name that must be met

    monkeypatch.setattr("tempfile.tempdir", str(base))
    return Path(default_cache_dir())


@as_root
def test_compiled_code_that_another_user_prepared_is_never_loaded(tmp_path, monkeypatch):
    prepared = _compiled_by_default(folder_of_everybody(tmp_path / "tmp"), monkeypatch)
    prepared.mkdir(mode=0o777)
    give_away(prepared)
    scratch, variables = make_scratch({"TMPDIR": str(tmp_path / "tmp")})
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert Path(variables[name]).is_relative_to(scratch) and Path(variables[name]).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["open to all", "a link"])
@pytest.mark.parametrize("name", LIBRARY_CACHES)
def test_a_cache_of_a_library_that_others_can_change_is_replaced_by_a_private_one(tmp_path, name, kind):
    cache = tmp_path / "cache"
    if kind == "a link":
        folder_of_everybody(tmp_path / "theirs")
        cache.symlink_to(tmp_path / "theirs")
    else:
        folder_of_everybody(cache, 0o777)
    scratch, variables = make_scratch({"TMPDIR": str(tmp_path), name: str(cache)})
    assert Path(variables[name]).is_relative_to(scratch)


def test_a_worker_has_no_temporary_folder_where_others_could_replace_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    scratch, _ = make_scratch({"TMPDIR": str(folder_of_everybody(tmp_path / "open", 0o777))})
    assert scratch.is_relative_to(tmp_path / "mine")


def test_a_folder_that_nobody_may_write_is_removed(tmp_path):
    scratch, _ = make_scratch({"TMPDIR": str(tmp_path)})
    (scratch / "a" / "b").mkdir(parents=True)
    (scratch / "a").chmod(0)
    remove_scratch(scratch)
    assert not scratch.exists()
