"""The axis ``device`` with names of the user's list: one run, a figure of each device, and no clocks mixed."""

import json
import threading
from types import SimpleNamespace

import pytest

from ace_studio.jobs.devices.measuring import Measured
from ace_studio.records.devices import is_device_name, make_device
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.sweep_file import read_jobs
from ace_studio.records.sweeps import RowStatus, SweepOptions, SweepStatus
from ace_studio.session.kept.devices import DeviceList
from ace_studio.sweeps import on_devices
from ace_studio.sweeps.running import JobAdvanced, SweepAdvanced, run_sweep
from tests.records.results.test_on_devices import figure
from tests.sweeps.fake_jobs import LOG_VARIABLE
from tests.sweeps.test_running import lines, written

pytestmark = pytest.mark.usefixtures("fake_jobs")

LOST = Problem(code=ErrorCode.NOT_INSTALLED, what="nothing is installed there", remedy="install it")


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Plays the devices; returns what was measured."""
    asked = []

    def answer(device, result, folder, *, indices, is_trusted, tell, started, word):
        asked.append((device.name, indices))
        tell({"kind": "progress", "detail": "round 1 of 2", "fraction": None})
        if device.name == "broken":
            return Measured(figures={}, problems={indices[0]: LOST})
        ms = {"box": 7.0, "pi": 30.0}[device.name]
        return Measured(figures={indices[0]: figure(ms, device.name, machine=f"{device.name}-1")}, problems={})

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("box", "pi", "broken"):
        DeviceList.of_user().add(make_device(name, f"user@{name}"))
    monkeypatch.setattr(on_devices, "measure_on", answer)
    monkeypatch.setenv(LOG_VARIABLE, str(tmp_path / "log.txt"))
    return asked


def swept(path, out, seen=None, tell=None):
    tell = tell or ((lambda _event: None) if seen is None else seen.append)
    return run_sweep(read_jobs([path]), out, SweepOptions(trust=True, workers=1), tell)


def test_one_run_is_measured_on_every_device_and_their_clocks_are_never_compared(tmp_path, measured):
    path = written(tmp_path / "in", axes='device = ["cpu", "box", "pi"]\nthreads = [1, 2]')
    seen = []
    report = swept(path, tmp_path / "out", seen)
    rows = {(row.axes["device"], row.axes["threads"]): row for row in report.rows}
    assert report.status is SweepStatus.OK and len(rows) == 6
    assert len(lines(tmp_path / "log.txt", "start")) == 4  # on the CPU, and for the devices, with 1 and 2 threads
    assert sorted(name for name, _ in measured) == ["box", "box", "pi", "pi"]
    assert rows["cpu", 1].latency_ms == 2.0 and rows["cpu", 1].speedup is not None
    box, pi = rows["box", 1], rows["pi", 1]
    assert (box.latency_ms, pi.latency_ms, box.host) == (7.0, 30.0, "box: box-1")
    assert box.speedup is None and box.baseline_ms is None and box.metric == rows["cpu", 1].metric
    assert box.folder == pi.folder and box.on_front and pi.on_front  # although pi is slower: another clock
    details = [one.detail for one in seen if isinstance(one, JobAdvanced) and one.detail.startswith("on box")]
    assert details == ["on box: round 1 of 2"] * 2
    figures = json.loads((tmp_path / "out" / box.folder / "result.json").read_text())["runs"][0]["devices"]
    assert {one["device"] for one in figures} == {"box", "pi"}


def test_a_sweep_that_goes_on_measures_only_what_is_missing(tmp_path, measured):
    folder = tmp_path / "in"
    first = swept(written(folder, axes='device = ["box"]'), tmp_path / "out")
    again = swept(written(folder, axes='device = ["box", "pi"]'), tmp_path / "out")
    assert [name for name, _ in measured] == ["box", "pi"] and len(lines(tmp_path / "log.txt", "start")) == 1
    assert again.status is SweepStatus.OK and [row.latency_ms for row in again.rows] == [7.0, 30.0]
    assert first.rows[0].latency_ms == 7.0


def test_a_device_that_cannot_measure_fails_its_row_and_no_other(tmp_path, measured):
    report = swept(written(tmp_path / "in", axes='device = ["broken", "box"]'), tmp_path / "out")
    broken, box = report.rows
    assert broken.status is RowStatus.FAILED and broken.error == LOST and broken.latency_ms is None
    assert box.status is RowStatus.DONE and report.status is SweepStatus.INCOMPLETE


def test_a_device_that_is_not_in_the_list_is_told_before_anything_runs(tmp_path, measured):
    with pytest.raises(AceError) as caught:
        swept(written(tmp_path / "in", axes='device = ["nobody"]'), tmp_path / "out")
    assert "There is no device 'nobody'" in caught.value.problem.what and not (tmp_path / "log.txt").exists()


def test_devices_measure_at_the_same_time_and_rows_come_meanwhile(tmp_path, measured, monkeypatch):
    together, answer = threading.Barrier(2, timeout=60), on_devices.measure_on
    came = {name: threading.Event() for name in ("cpu", "pi")}

    def slow(device, *args, **options):
        together.wait()  # neither goes on before both are at it
        if device.name == "box":
            assert all(event.wait(60) for event in came.values())
        return answer(device, *args, **options)

    def tell(event):
        name = event.row.axes["device"] if isinstance(event, SweepAdvanced) and event.row else ""
        if name in came:
            came[name].set()

    monkeypatch.setattr(on_devices, "measure_on", slow)
    report = swept(written(tmp_path / "in", axes='device = ["box", "pi", "cpu"]'), tmp_path / "out", tell=tell)
    assert [row.latency_ms for row in report.rows[:2]] == [7.0, 30.0] and report.status is SweepStatus.OK


def test_ctrl_c_ends_a_measurement_and_the_next_call_makes_it(tmp_path, measured, monkeypatch):
    answer, killed = on_devices.measure_on, threading.Event()

    def endless(device, result, folder, *, tell, started, **options):
        started(SimpleNamespace(kill=killed.set))
        tell({"kind": "progress", "detail": "round 1 of 2", "fraction": None})
        assert killed.wait(60)
        raise AceError(LOST)

    def tell(event):
        if isinstance(event, JobAdvanced) and event.detail.startswith("on box"):
            raise KeyboardInterrupt

    monkeypatch.setattr(on_devices, "measure_on", endless)
    path = written(tmp_path / "in", axes='device = ["box"]')
    report = swept(path, tmp_path / "out", tell=tell)
    assert report.rows[0].status is RowStatus.CANCELLED and killed.is_set()
    monkeypatch.setattr(on_devices, "measure_on", answer)
    report = swept(path, tmp_path / "out")
    assert report.rows[0].latency_ms == 7.0 and len(lines(tmp_path / "log.txt", "start")) == 1


def test_words_of_recipes_stay_words_of_recipes():
    assert [is_device_name(word) for word in ("cpu", "auto", "cuda", "cuda:1", "box", "a b", 3)] == [
        False, False, False, False, True, False, False
    ]  # fmt: skip
