"""The time limit of a capture attempt."""

import time

import pytest

from ace_studio.engine.capture.limit import CaptureInterruptedError, CaptureTimeoutError, interruptible


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.002)


def test_a_block_over_the_limit_is_interrupted() -> None:
    started = time.monotonic()
    with pytest.raises(CaptureTimeoutError), interruptible(0.2, should_stop=lambda: False):
        busy(30)
    assert time.monotonic() - started < 5


def test_a_block_that_swallows_the_first_interrupt_is_interrupted_again() -> None:
    with pytest.raises(CaptureTimeoutError), interruptible(0.1, should_stop=lambda: False):
        try:
            busy(30)
        except BaseException:  # noqa: BLE001 - what careless code does
            busy(30)


def test_a_wish_to_stop_is_heard_before_the_limit() -> None:
    with pytest.raises(CaptureInterruptedError), interruptible(60, should_stop=lambda: True):
        busy(30)


def test_nothing_arrives_after_the_block_has_ended() -> None:
    for _ in range(20):
        with interruptible(60, should_stop=lambda: False):
            pass
    busy(0.3)
