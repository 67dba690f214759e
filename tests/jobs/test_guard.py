"""A worker and its guard end with the parent."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ace_studio.jobs.processes import MARK_VARIABLE, marked_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

WORKER = """
import resource, sys, time
sys.path.insert(0, {root!r})
from ace_studio.jobs.guard import die_with_parent
die_with_parent({{"lifeline": {lifeline}, "mark": {mark!r}}})
print(resource.getrlimit(resource.RLIMIT_CORE)[0], open("/proc/self/oom_score_adj").read().strip(), flush=True)
time.sleep(60)
"""


def test_a_closed_lifeline_ends_the_worker_and_its_guard(root: Path) -> None:
    mark = secrets.token_hex(8)
    reading, lifeline = os.pipe()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER.format(root=str(root), lifeline=reading, mark=mark)],
        env={**os.environ, MARK_VARIABLE: mark},
        pass_fds=[reading],
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(reading)
    assert worker.stdout is not None
    with worker.stdout:
        assert worker.stdout.readline().split() == ["0", "500"]  # no core dump, and first to go if memory runs out
        assert len(marked_processes(mark)) == 2
        os.close(lifeline)
        assert worker.wait(10) == -9
    deadline_s = time.monotonic() + 10
    while marked_processes(mark) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert marked_processes(mark) == []
