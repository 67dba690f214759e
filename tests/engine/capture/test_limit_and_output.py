"""The time limit of a rung, and the collecting of what torch prints."""

from __future__ import annotations

import io
import logging
import sys
import time
import warnings

import pytest

from ace_studio.engine.capture.limit import CaptureInterruptedError, CaptureTimeoutError, interruptible
from ace_studio.engine.capture.output import captured_output


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


def test_prints_logs_and_warnings_are_collected_and_the_streams_put_back() -> None:
    logger = logging.getLogger("torch.export")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    before = handler.stream
    try:
        with captured_output() as text:
            print("a graph")
            print("an error", file=sys.stderr)
            logger.error("a log line")
            warnings.warn("a warning", UserWarning, stacklevel=1)
        assert handler.stream is before
    finally:
        logger.removeHandler(handler)
    for part in ("a graph", "an error", "a log line", "UserWarning: a warning"):
        assert part in text.getvalue()


def test_a_logger_whose_stream_was_closed_is_heard_all_the_same() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("torch.of_this_test")
    logger.addHandler(handler)
    stream.close()  # as the output of a notebook's cell or of another test is
    try:
        with captured_output() as text:
            logger.error("a log line")
        assert handler.stream is stream
    finally:
        logger.removeHandler(handler)
    assert "a log line" in text.getvalue()
