"""Cycles are collected in the window's thread, and in no other."""

import gc
import threading
import weakref

import pytest

from ace_studio.gui.shell.app import GarbageTimer, collect_due


class Node:
    """Refers to itself, so that only a garbage collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def timer(qapp):
    timer = GarbageTimer()
    yield timer
    timer.stop()
    gc.disable()  # tests with a window run so, see tests/conftest.py


@pytest.mark.usefixtures("timer")
def test_a_thread_that_allocates_much_does_not_collect():
    node = weakref.ref(Node())
    threshold = gc.get_threshold()[0]
    thread = threading.Thread(target=lambda: [[] for _ in range(20 * threshold)])
    thread.start()
    thread.join()
    assert node() is not None


def test_the_timer_collects_what_is_due(timer, qtbot):
    node = weakref.ref(Node())
    kept = [[] for _ in range(2 * gc.get_threshold()[0])]
    qtbot.waitUntil(lambda: node() is None, timeout=5000)
    assert kept


def test_nothing_is_collected_before_a_threshold_is_passed(qapp):
    gc.collect()
    assert collect_due() is None


def test_at_the_end_the_rest_is_collected_and_python_collects_again_by_itself(qapp):
    timer = GarbageTimer()
    node = weakref.ref(Node())
    assert not gc.isenabled()
    timer.stop()
    assert node() is None
    assert gc.isenabled()
    gc.disable()
