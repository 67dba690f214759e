import signal
import subprocess
import sys
import threading

import pytest

from ace_studio.sweeps.running import noted_interrupts


@pytest.fixture
def usual():
    """Python's own handler, whatever the tests were started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


DROPPED = """
import signal
from ace_studio.sweeps.running import noted_interrupts

class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
with noted_interrupts() as noted:
    one = Deleted()
    print(noted.is_set())
    del one
    print(noted.is_set())
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("interrupted")
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_a_ctrl_c_that_python_drops_is_noted(root):
    """In a process of its own: the signals ended that of the tests once."""
    words = [sys.executable, "-c", DROPPED]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["False", "True", "interrupted", "True"], done.stderr


def test_other_threads_and_other_handlers_are_left_alone(usual):
    def note(number, frame):
        pass

    signal.signal(signal.SIGINT, note)
    with noted_interrupts():
        assert signal.getsignal(signal.SIGINT) is note
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen = []

    def elsewhere():
        with noted_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
