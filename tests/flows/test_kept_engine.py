"""The engine that is kept for the next job is as it was before, or another one, whatever a job did to its process."""

import sys
import textwrap

import pytest

from ace_studio.jobs.executors import WorkerExecutor
from tests.corpus.case import Case, Outcome, run, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors, limits and /proc")

WITNESS = """
import os, threading
assert torch.get_default_dtype() is torch.float32
assert [one.name for one in threading.enumerate() if one.name == "left behind"] == []
assert os.fstat(0) and os.fstat(1) and os.fstat(2) and "PLANTED" not in os.environ
print("witness was here", flush=True)
"""
SPOILED = {
    "closes-0-to-9": ("import os; os.closerange(0, 10)", "descriptors"),
    "leaves-files-open": (
        """
        import os, resource
        global kept
        kept = [os.open("/dev/null", 0) for _ in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 6 // 10)]""",
        "files open",
    ),
    "leaves-a-thread": (
        """
        import threading, time
        def spin():
            while True: time.sleep(0.01)
        threading.Thread(target=spin, name="left behind", daemon=True).start()""",
        "a thread behind that runs model.py",
    ),
}
"""What cannot be put back, and what the line in the log says of it."""


def _job(name: str, source: str, folder, executor: WorkerExecutor) -> Outcome:
    (folder / name).mkdir()
    case = Case(name=name, source=source)
    write(case, folder / name)
    return run(case, folder / name, executor)


def _attack(code: str) -> str:
    """A model that does it where it is called: after its import, and while a job is busy."""
    body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    return f"""
def attack():
{body}

_plain = inputs

def inputs():
    found = _plain()
    attack()
    return found
"""


def _pid(executor: WorkerExecutor) -> int | None:
    return executor._client.pid


def test_an_engine_that_was_put_back_stays(executor, tmp_path):
    code = "import os; os.environ['PLANTED'] = '1'; torch.set_default_dtype(torch.float64); os.dup2(os.open('/', 0), 1)"
    assert _job("before", WITNESS, tmp_path, executor).code == ""
    pid = _pid(executor)
    spoiled = _job("attack", _attack(code), tmp_path, executor)
    after = _job("after", WITNESS, tmp_path, executor)
    assert (after.text, [line for line in spoiled.log if "started anew" in line]) == ("", [])
    assert any("witness was here" in line for line in after.log)
    assert _pid(executor) == pid


@pytest.mark.parametrize("name", SPOILED)
def test_an_engine_that_a_job_spoiled_is_started_anew_and_one_line_says_so(name, executor, tmp_path):
    code, words = SPOILED[name]
    spoiled = _job("attack", _attack(code), tmp_path, executor)
    told = [line for line in spoiled.log if "started anew" in line]
    assert len(told) == 1 and words in told[0]
    after = _job("after", WITNESS, tmp_path, executor)
    assert (after.code, after.text) == ("", "")
    assert any("witness was here" in line for line in after.log)


def test_a_job_that_closed_the_files_of_the_engine_is_told_that_and_nothing_else(executor, tmp_path):
    told = _job("attack", _attack("import os; os.closerange(0, 64)"), tmp_path, executor)
    assert "did not expect" not in told.text and "you can go on" not in told.text
