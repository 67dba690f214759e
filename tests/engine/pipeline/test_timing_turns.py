import pytest
from filelock import FileLock

from ace_studio.engine.pipeline.timing_turns import in_turn
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.messages import Phase, Progress


def is_free(path):
    lock = FileLock(path)
    try:
        with lock.acquire(timeout=0):
            return True
    except TimeoutError:
        return False


def test_the_lock_is_held_while_something_is_measured_and_no_longer(tmp_path):
    path, reporter = str(tmp_path / "lock"), Reporter()
    with in_turn(reporter, path):
        assert is_free(path)
        reporter.phase(Phase.MEASURE)
        assert not is_free(path)
        reporter.phase(Phase.MEASURE, "the next one")
        assert not is_free(path)
        reporter.phase(Phase.EXPORT)
        assert is_free(path)
        reporter.phase(Phase.MEASURE)
    assert is_free(path)


def test_a_job_says_that_it_waits_and_can_be_cancelled_meanwhile(tmp_path):
    path, seen = str(tmp_path / "lock"), []
    reporter = Reporter(seen.append, is_cancelled=lambda: len(seen) > 0)
    with FileLock(path), in_turn(reporter, path), pytest.raises(Cancelled):
        reporter.phase(Phase.MEASURE)
    (told,) = (one.detail for one in seen if isinstance(one, Progress))
    assert told == "waiting while another job measures on this machine"


def test_a_lock_that_cannot_be_opened_is_none(tmp_path):
    reporter = Reporter()
    with in_turn(reporter, str(tmp_path / "no" / "lock")):
        reporter.phase(Phase.MEASURE)


def test_without_a_lock_nothing_is_done():
    reporter = Reporter()
    with in_turn(reporter, ""):
        reporter.phase(Phase.MEASURE)
