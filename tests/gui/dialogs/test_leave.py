"""Closing the window does not end a long run without a question."""

import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from ace_studio.gui.dialogs import leave
from ace_studio.gui.dialogs.leave import LeaveDialog
from ace_studio.records.messages import JobCancelled
from ace_studio.session.sweep_state import SweepPhase, SweepState


@pytest.fixture
def long_run(desk, running):
    now_s = time.monotonic()  # the process that this test was forked from may have begun its run long ago
    desk.session._state.change(activity=replace(desk.document.activity, started_s=now_s - 185))
    yield desk
    desk.window.leave()


def asked(desk) -> list[LeaveDialog]:
    desk.settle()
    return [one for one in desk.window.findChildren(LeaveDialog) if one.isVisible()]


def test_a_long_run_is_not_ended_before_the_answer(long_run):
    long_run.do("quit")
    assert long_run.window.isVisible()
    (dialog,) = asked(long_run)
    assert dialog.words.text().startswith("A run has gone on for 3:0")
    assert QApplication.focusWidget() in (dialog.stay_button, None)
    QTest.mouseClick(dialog.close_button, Qt.MouseButton.LeftButton)
    assert not long_run.window.isVisible()
    long_run.session.history.load_history()
    assert [run.status for run in long_run.document.history] == ["cancelled"]


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_keys_pressed_without_reading_keep_the_run(long_run, key):
    long_run.window.close()
    (dialog,) = asked(long_run)
    QTest.keyClick(dialog, key)
    assert not asked(long_run)
    assert long_run.window.isVisible() and long_run.document.activity.is_working
    assert not long_run.engine.cancelled


def test_return_on_the_other_button_closes_the_window(long_run):
    long_run.window.close()
    (dialog,) = asked(long_run)
    QTest.keyClick(dialog.close_button, Qt.Key.Key_Return)
    assert not long_run.window.isVisible()


def test_the_question_goes_with_the_run(long_run):
    long_run.do("quit")
    long_run.session.apply(JobCancelled(job=long_run.engine.requests[-1].job))
    assert not asked(long_run)
    assert long_run.window.isVisible()
    long_run.do("quit")
    assert not long_run.window.isVisible()


def test_a_run_that_has_just_begun_and_no_run_are_no_question(desk):
    desk.running()
    now = replace(desk.document.activity, started_s=time.monotonic())  # however busy the machine is
    desk.session._state.change(activity=now)
    desk.do("quit")
    assert not desk.window.isVisible()


def test_runs_that_wait_and_sweeps_are_named(long_run):
    long_run.do("run")
    assert leave.work_words(long_run.document).endswith("The runs that wait do not start.")
    long_run.session._state.change(sweep=SweepState(phase=SweepPhase.RUNNING))
    assert leave.work_words(long_run.document).startswith("A sweep has gone on for")
