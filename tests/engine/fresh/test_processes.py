"""A function is called in a process of its own, forked or started, which ends when its caller wants it to."""

import json
import os
import time
from pathlib import Path

import psutil
import pytest

from ace_studio.engine.fresh import Preparation, fresh_python, processes, run_fresh
from tests.engine.fresh.calling import CALLED, called, on_linux

both_ways = pytest.mark.parametrize("forked", [pytest.param(True, marks=on_linux), False])


@both_ways
def test_it_is_called_with_the_arguments_in_the_same_folder_and_what_it_prints_is_kept(
    tmp_path, monkeypatch, servers, forked
):
    monkeypatch.chdir(tmp_path)
    seen = called(tmp_path, "note", "word", forked=forked)
    assert seen["pid"] not in (os.getpid(), *(one._process.pid for one in servers._running.values()))
    assert Path(seen["folder"]).samefile(tmp_path)
    assert (tmp_path / "log.txt").read_text(encoding="utf-8") == "word\n"


@both_ways
def test_what_one_call_leaves_in_its_process_is_not_there_in_the_next(tmp_path, servers, forked):
    first, second = (called(tmp_path, "note", word, forked=forked) for word in ("a", "b"))
    assert (first["calls"], second["calls"]) == (["a"], ["b"])
    assert first["pid"] != second["pid"]


@on_linux
def test_one_process_is_forked_again_and_again_until_the_environment_changes(tmp_path, monkeypatch, servers):
    def server():
        (one,) = servers._running.values()
        return one._process.pid

    called(tmp_path)
    first = server()
    called(tmp_path)
    monkeypatch.setenv("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "1")  # no new process is given it
    called(tmp_path)
    assert server() == first
    monkeypatch.setenv("ACE_TEST_FRESH", "new")
    assert called(tmp_path)["variable"] == "new"
    assert server() != first
    assert not psutil.pid_exists(first)


@on_linux
@pytest.mark.parametrize("at", ["idle", "killed"])
def test_a_server_that_has_ended_is_replaced(tmp_path, servers, at):
    called(tmp_path)
    (server,) = servers._running.values()
    if at == "killed":
        server._process.kill()
        server._process.wait()
    else:
        server._orders.shutdown(1)  # as if it had left because nothing came for long
        server._process.wait(10)
    assert called(tmp_path)["calls"] == [""]


@on_linux
def test_where_no_server_starts_a_process_is_started_instead(tmp_path, monkeypatch, servers):
    def broken(module, *words):
        return ["false"] if "server" in module else fresh_python(module, *words)

    monkeypatch.setattr(processes, "fresh_python", broken)
    assert called(tmp_path)["calls"] == [""]


@both_ways
def test_an_error_ends_in_the_log(tmp_path, servers, forked):
    run_fresh(CALLED, "fail", log=tmp_path / "log.txt", check=lambda: None, forked=forked)
    assert "no such luck" in (tmp_path / "log.txt").read_text(encoding="utf-8")


@both_ways
def test_what_the_check_raises_kills_the_process(tmp_path, servers, forked):
    place = tmp_path / "pid"

    def check():
        if place.exists() and place.read_text(encoding="utf-8"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_fresh(CALLED, "wait", str(place), log=tmp_path / "log.txt", check=check, forked=forked)
    pid = int(place.read_text(encoding="utf-8"))
    for _ in range(100):
        if not psutil.pid_exists(pid):
            return
        time.sleep(0.05)
    pytest.fail("the process is still there")


@on_linux
def test_in_a_folder_that_was_removed_a_process_is_started(tmp_path, monkeypatch, servers):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    run_fresh(CALLED, "fail", log=tmp_path / "log.txt", check=lambda: None)
    assert "no such luck" in (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert not servers._running


@on_linux
def test_a_prepared_process_has_imported_what_is_forked_from_it(tmp_path, servers):
    prepared = Preparation(CALLED, "loaded", imports=["colorsys"])
    prepared.wait(lambda: None)
    (server,) = servers._running.values()
    place = tmp_path / "seen.json"
    call = {"log": tmp_path / "log.txt", "check": lambda: None}
    run_fresh(CALLED, "loaded", str(place), "colorsys", "chunk", **call)
    assert json.loads(place.read_text(encoding="utf-8")) == {"colorsys": True, "chunk": False}
    run_fresh(CALLED, "loaded", str(place), "colorsys", "chunk", **call, imports=["chunk"])
    assert json.loads(place.read_text(encoding="utf-8")) == {"colorsys": True, "chunk": True}
    assert [one._process.pid for one in servers._running.values()] == [server._process.pid]


@on_linux
def test_waiting_for_a_preparation_can_be_cancelled_and_nothing_is_forked_by_it(servers):
    prepared = Preparation(CALLED, "loaded", imports=["json"])
    with pytest.raises(InterruptedError):
        prepared.wait(_cancelled)
    prepared.close()
    (server,) = servers._running.values()
    assert psutil.Process(server._process.pid).children() == []
    prepared.wait(_cancelled)  # closed: there is nothing to wait for


def _cancelled():
    raise InterruptedError
