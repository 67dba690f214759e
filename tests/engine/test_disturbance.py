"""What disturbs a measurement can be seen: threads that wait for a core, and the processor's speed."""

from types import SimpleNamespace

import pytest

from ace_studio.engine import disturbance
from tests.quiet import really_reference_ms, really_waited_s


def test_the_time_that_threads_wait_for_a_core_only_grows():
    """Elsewhere than on Linux it is the time without computing, which passes while this one waits."""
    assert 0.0 <= really_waited_s() <= really_waited_s()


@pytest.mark.parametrize(("system", "waited"), [("posix", 3.0), ("nt", 0.0)])
def test_where_no_queue_is_known_it_is_the_time_without_computing_if_the_clock_is_fine_enough(
    system, waited, tmp_path, monkeypatch
):
    monkeypatch.setattr(disturbance, "_TASKS", tmp_path)
    monkeypatch.setattr(disturbance, "os", SimpleNamespace(name=system))
    monkeypatch.setattr(disturbance, "time", SimpleNamespace(perf_counter=lambda: 5.0, process_time=lambda: 2.0))
    assert really_waited_s() == waited


def test_the_waits_of_all_threads_are_added_and_one_that_has_ended_counts_nothing(tmp_path, monkeypatch):
    for name, waited in (("1", 1_500_000_000), ("2", 500_000_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(f"7 {waited} 3\n")
    (tmp_path / "ended" / "schedstat").mkdir(parents=True)
    monkeypatch.setattr(disturbance, "_TASKS", tmp_path)
    assert really_waited_s() == 2.0


def test_the_reference_computation_takes_well_below_a_millisecond():
    assert 0.0 < really_reference_ms() < 50.0
