"""What a job changes of its process is as before when the job has ended; libraries keep what they added."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from ace_studio.engine.pipeline.process_state import in_folder
from tests.engine.pipeline.process_attacks import PUT_BACK, SPOILED

needs_forks = pytest.mark.skipif(sys.platform != "linux", reason="forks a process for each attack")


def test_settings_folder_and_variables_are_put_back_even_if_the_job_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("ACE_KEPT", "before")
    before, threads, state = Path.cwd(), torch.get_num_threads(), torch.get_rng_state()
    with pytest.raises(ValueError, match="in the job"), in_folder(tmp_path):
        assert Path.cwd() == tmp_path
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(threads + 3)
        torch.manual_seed(5)
        torch.rand = None
        monkeypatch.setenv("ACE_ADDED", "by a library")
        del os.environ["ACE_KEPT"]
        raise ValueError("in the job")
    assert (Path.cwd(), torch.get_default_dtype(), torch.get_num_threads()) == (before, torch.float32, threads)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.rand(1).shape == (1,)
    assert (os.environ["ACE_KEPT"], os.environ["ACE_ADDED"]) == ("before", "by a library")


def test_a_function_that_a_library_replaced_stays_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "zeros", torch.zeros)
    with in_folder(tmp_path):
        torch.zeros = pytest.fail
    assert torch.zeros is pytest.fail


def test_functions_that_watch_every_call_are_put_back():
    code = """
import sys, threading
from ace_studio.engine.pipeline.process_state import in_folder
read = (sys.gettrace, sys.getprofile, threading.gettrace, threading.getprofile)
with in_folder("."):
    for place in (sys, threading):
        place.setprofile(lambda *_: None)
        place.settrace(lambda *_: None)
    assert None not in [each() for each in read]
assert [each() for each in read] == [None] * 4
print("put back")
"""
    # A process of its own: Python 3.11 crashes or spins at times where a process of many threads is watched so.
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "put back\n", ended.stderr


def test_a_job_may_run_in_another_thread(tmp_path):
    done = []

    def job():
        with in_folder(tmp_path):
            done.append(Path.cwd())

    thread = threading.Thread(target=job)
    thread.start()
    thread.join()
    assert done == [tmp_path]


@pytest.fixture
def attack(fork_server):
    """Runs an attack in a process that is forked for it."""
    fork_server.start()

    def run(code: str):
        reading, writing = os.pipe()
        environment = {**os.environ, "ANSWER": "3"}
        process = fork_server.fork(
            "tests.engine.pipeline.process_attacks:attack", code, descriptors={1: 2, 2: 2, 3: writing},
            environment=environment, folder=str(Path.cwd()),
        )  # fmt: skip
        os.close(writing)
        with os.fdopen(reading) as answer:
            said = answer.read()
        assert process.wait(30) == 0
        return json.loads(said)

    return run


@needs_forks
@pytest.mark.parametrize("name", PUT_BACK)
def test_what_a_model_changes_is_put_back_and_a_witness_finds_nothing(attack, name):
    after = attack(PUT_BACK[name])
    assert (after["left"], after["found"]) == ([], "")


@needs_forks
@pytest.mark.parametrize("name", SPOILED)
def test_what_cannot_be_put_back_is_told(attack, name):
    code, words = SPOILED[name]
    assert any(words in one for one in attack(code)["left"])


@needs_forks
def test_the_test_of_the_process_takes_milliseconds(attack):
    assert min(attack("pass")["took_ms"] for _ in range(3)) < 100
