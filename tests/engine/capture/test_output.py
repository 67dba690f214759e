"""Collecting what torch prints."""

import io
import logging
import sys
import warnings

from ace_studio.engine.capture.output import captured_output


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
