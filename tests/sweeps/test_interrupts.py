from __future__ import annotations

import signal
import threading

import pytest

from ace_studio.sweeps.interrupts import noted_interrupts


@pytest.fixture
def usual():
    """Python's own handler, whatever the tests were started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_ctrl_c_that_python_drops_is_noted(usual):
    class Deleted:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with noted_interrupts() as noted:
        one = Deleted()
        assert not noted.is_set()
        del one
        assert noted.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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
