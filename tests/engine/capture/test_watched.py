"""What the parent process is told of a capture attempt."""

from __future__ import annotations

import time

import pytest
from torch import nn

from ace_studio.engine.capture.limit import CaptureTimeoutError
from ace_studio.engine.capture.watched import watched_attempt
from ace_studio.engine.progress import Reporter
from ace_studio.records.messages import AttemptStarted, Event


def test_an_attempt_reports_when_it_starts_with_its_limit_and_when_that_holds_no_more() -> None:
    events: list[Event] = []
    with (
        pytest.raises(CaptureTimeoutError),
        watched_attempt("export", 0.2, module=nn.Identity(), reporter=Reporter(events.append)),
    ):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            time.sleep(0.005)
    limits = [event.limit_s for event in events if isinstance(event, AttemptStarted)]
    assert limits == [0.2, None]
