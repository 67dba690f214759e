import socket
from types import SimpleNamespace

import msgspec
import psutil

from ace_studio.records.bundle import Bundle, BundledFile
from ace_studio.records.errors import ErrorCode
from ace_studio.records.recipes.recipe import EngineChoice, Recipe
from ace_studio.sweeps import work
from ace_studio.sweeps.work import SweepWorker, Task, TaskAnswer, run_task


def test_files_that_did_not_arrive_are_the_answer_of_the_job():
    bundle = Bundle(recipe=Recipe(), folder=".", key="", files=(BundledFile(path="a.py", sha256="0" * 64, size=1),))
    task = Task(job="1", topic="t", recipe=Recipe(), bundle=bundle)
    answer = msgspec.msgpack.decode(run_task(msgspec.msgpack.encode(task)), type=TaskAnswer)
    assert [one.code for one in answer.problems] == [ErrorCode.BAD_FILE]
    assert answer.result == b""
    assert answer.host == socket.gethostname()
    elsewhere = msgspec.structs.replace(task, recipe=Recipe(engine=EngineChoice(host="ada@box")))
    answer = msgspec.msgpack.decode(run_task(msgspec.msgpack.encode(elsewhere)), type=TaskAnswer)
    assert answer.host == "ada@box"


def test_a_link_that_a_job_left_in_its_folder_sends_nothing_from_outside_of_it(tmp_path):
    (tmp_path / "key").write_text("secret")
    output = tmp_path / "out"
    output.mkdir()
    (output / "result.json").write_text("{}")
    (output / "same.json").symlink_to("result.json")
    (output / "report.html").symlink_to(tmp_path / "key")
    (output / "home").symlink_to(tmp_path)
    assert work._files_in(output) == {"result.json": b"{}", "same.json": b"{}"}


def test_a_worker_is_kept_to_its_cores_and_ends_its_job_when_it_closes(monkeypatch):
    pinned, killed = [], []
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(cpu_affinity=pinned.append))
    monkeypatch.setattr(work, "_engine", SimpleNamespace(kill=lambda: killed.append(True)))
    plugin = SweepWorker({"1": [2, 3]})
    plugin.setup(SimpleNamespace(name=1))
    plugin.setup(SimpleNamespace(name="other"))
    plugin.teardown(SimpleNamespace(name=1))
    assert (pinned, killed) == ([[2, 3]], [True])
