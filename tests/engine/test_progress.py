"""A reporter passes findings on until a stop is requested."""

import pytest

from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.messages import LogLine, Phase, Progress


def test_progress_names_the_job_and_the_phase_that_began_last():
    events = []
    reporter = Reporter(events.append, job="j")
    reporter.phase(Phase.CAPTURE, "export")
    reporter.advance(0.5, "half")
    assert events == [
        Progress(job="j", phase=Phase.CAPTURE, detail="export", fraction=None),
        Progress(job="j", phase=Phase.CAPTURE, detail="half", fraction=0.5),
    ]


def test_the_seconds_of_a_phase_that_comes_twice_are_added_up():
    now = [0.0]
    reporter = Reporter(clock=lambda: now[0])
    for phase, seconds in ((Phase.LOAD, 1.0), (Phase.LOWER, 2.0), (Phase.MEASURE, 0.5), (Phase.LOWER, 4.0)):
        reporter.phase(phase)
        now[0] += seconds
    assert reporter.seconds_by_phase() == {"load": 1.0, "lower": 6.0, "measure": 0.5}


def test_the_same_warning_is_kept_once():
    reporter = Reporter()
    for where in ("a", "a", "b"):
        reporter.warn("code", "words", where=where)
    assert [warning.where for warning in reporter.warnings] == ["a", "b"]


def test_after_a_stop_every_report_raises_and_only_tell_still_sends():
    events = []
    reporter = Reporter(events.append, is_cancelled=lambda: True)
    for report in (reporter.check, lambda: reporter.phase(Phase.LOAD), lambda: reporter.advance(None)):
        with pytest.raises(Cancelled):
            report()
    reporter.tell(LogLine(job="", text="words"))
    assert [event.text for event in events] == ["words"]


def test_a_quiet_reporter_sends_nothing_and_stops_with_its_parent():
    events, stopped = [], []
    quiet = Reporter(events.append, is_cancelled=lambda: bool(stopped)).quiet()
    quiet.phase(Phase.LOAD)
    assert not events
    stopped.append(True)
    with pytest.raises(Cancelled):
        quiet.check()
