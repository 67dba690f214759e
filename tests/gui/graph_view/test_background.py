"""Layouts of large graphs, in a thread: the window never waits for them."""

import threading

import pytest
from PySide6.QtCore import QObject

from ace_studio.gui.graph_view.background import Background


@pytest.fixture
def background(qapp):
    owner = QObject()
    yield Background(owner)
    owner.deleteLater()


def waits(gate, answer, ended):
    """Work that waits for a gate, and then looks whether it is still wanted."""

    def work(check):
        try:
            gate.wait(10)
            check()
            return answer
        finally:
            ended.set()

    return work


def test_the_result_arrives_in_the_windows_thread(background, qtbot):
    found = []
    background.start(
        lambda check: threading.current_thread().name, lambda name: found.append((name, threading.current_thread()))
    )
    qtbot.waitUntil(lambda: bool(found))
    assert found == [("graph layout", threading.main_thread())]
    assert not background.is_working


def test_a_newer_piece_of_work_supersedes_an_older_one(background, qtbot):
    gate, ended, found = threading.Event(), threading.Event(), []
    background.start(waits(gate, "older", ended), found.append)
    background.start(lambda check: "newer", found.append)
    qtbot.waitUntil(lambda: bool(found))
    gate.set()
    assert ended.wait(10)
    qtbot.wait(50)
    assert found == ["newer"]


def test_stopped_work_ends_at_its_next_check_and_has_no_result(background, qtbot):
    gate, ended, found = threading.Event(), threading.Event(), []
    background.start(waits(gate, "x", ended), found.append)
    background.stop()
    gate.set()
    assert ended.wait(10)
    qtbot.wait(50)
    assert not found
    assert not background.is_working


def test_work_may_go_on_while_its_owner_is_deleted(qtbot):
    owner, gate, ended, found = QObject(), threading.Event(), threading.Event(), []
    background = Background(owner)
    wanted = background._tasks
    background.start(waits(gate, "x", ended), found.append)
    task = wanted[0]
    owner.deleteLater()
    qtbot.waitUntil(lambda: not task.is_wanted)
    gate.set()
    assert ended.wait(10)
    qtbot.wait(50)
    assert not found


def test_a_mistake_in_the_work_is_raised_in_the_windows_thread(background, qtbot):
    def fails(check):
        raise ValueError("no such block")

    with qtbot.captureExceptions() as raised:
        background.start(fails, print)
        qtbot.waitUntil(lambda: bool(raised))
    assert "no such block" in str(raised[0][1])
