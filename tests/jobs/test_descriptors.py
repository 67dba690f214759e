"""What a job does to descriptors is noticed, and stdin, stdout and stderr come back."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="without effect there")
CODE = """
import json, os, resource, sys
from ace_studio.jobs.descriptors import Descriptors
told = os.dup(2)
os.set_inheritable(told, False)
import fcntl
told = fcntl.fcntl(told, fcntl.F_DUPFD, 700)
watch = Descriptors()
assert watch.put_back() == ()
{attack}
left = watch.put_back()
os.write(1, b"said on stdout")
os.write(told, json.dumps(left).encode())
"""


def attack(code):
    """What is said to be left in a process that did this, and what reached its stdout afterwards."""
    ended = subprocess.run([sys.executable, "-c", CODE.format(attack=code)], capture_output=True, text=True, check=True)
    return json.loads(ended.stderr), ended.stdout


def test_an_honest_job_leaves_nothing():
    opened = "kept = [open('/dev/null') for _ in range(20)]; other = open('/dev/null'); other.close()"
    assert attack(opened) == ([], "said on stdout")


@pytest.mark.parametrize(
    "code", ["os.closerange(0, 10)", "os.closerange(3, 5)", "os.close(17)", "os.closerange(90, 130)"]
)
def test_closed_descriptors_are_told(code):
    (left,), said = attack(code)
    assert "closed descriptors" in left and said == "said on stdout"


def test_a_descriptor_that_was_replaced_is_told():
    (left,), _ = attack("os.dup2(os.open('/dev/null', os.O_RDONLY), 20)")
    assert "(20)" in left


@pytest.mark.parametrize("code", ["os.close(1)", "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)", "os.close(0)"])
def test_the_streams_come_back(code):
    assert attack(code) == ([], "said on stdout")


def test_files_that_pile_up_are_told_before_none_can_be_opened():
    most = "resource.setrlimit(resource.RLIMIT_NOFILE, (800, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))"
    (left,), _ = attack(f"{most}; kept = [os.open('/dev/null', 0) for _ in range(450)]")
    assert "files open, of 800" in left
