"""A measurement from the results: its dialog, its columns, its chart, and its end."""

import threading

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from ace_studio.gui.dialogs.devices import DevicesDialog
from ace_studio.gui.dialogs.measure import MeasureDialog
from ace_studio.jobs.devices import measuring
from ace_studio.jobs.devices.measuring import Measured
from ace_studio.records.devices import THIS_MACHINE, DeviceKind
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.results import encode_result
from ace_studio.session.device_figures import run_in
from ace_studio.session.document import Activity, EngineState, JobKind
from tests.records.results.test_on_devices import figure

LOST = Problem(code=ErrorCode.NOT_INSTALLED, what="openvino is not installed on box", remedy="pip install openvino")


@pytest.fixture
def out(desk, ran, tmp_path):
    """A finished run that is shown, with its folder."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "result.json").write_bytes(encode_result(desk.document.result))
    desk.session._state.change(output=str(folder))
    desk.settle()
    return folder


@pytest.fixture
def answer(monkeypatch):
    def give(work):
        monkeypatch.setattr(measuring, "measure_on", work)

    return give


def measured(desk) -> MeasureDialog:
    panel = desk.panel("results")
    panel.measure_menu.aboutToShow.emit()
    panel.measure_menu.actions()[0].trigger()
    (dialog,) = desk.window.findChildren(MeasureDialog)
    return dialog


def two_figures(device, result, folder, *, is_trusted, tell, started):
    tell({"kind": "waiting", "why": "another measurement runs on box"})
    tell({"kind": "progress", "detail": "round 1 of 2", "fraction": 0.5})
    figures = {at: figure(4.0 / (at + 1), "here") for at in range(2)}
    return Measured(figures=figures, problems={2: LOST})


def test_the_figures_come_into_the_table_the_chart_and_the_folder(desk, out, answer):
    answer(two_figures)
    panel = desk.panel("results")
    before = [each.title for each in panel.model.columns]
    dialog = measured(desk)
    desk.bot.waitUntil(lambda: dialog.end_button.text() == "Close", timeout=10_000)
    desk.settle()
    added = [each.title for each in panel.model.columns if each.title not in before]
    assert added == ["here: latency, ms", "here: speed-up"]
    at = next(at for at, each in enumerate(panel.model.columns) if each.title == added[0])
    row = next(row for row, each in enumerate(panel.rows) if each.index == 1)
    assert panel.model.columns[at].values[row] == 2.0 and "governor" not in panel.model.columns[at].tips(row)
    assert [len(run.devices) for run in run_in(out).runs][:2] == [1, 1]
    assert "2.000 (1.800 - 2.200) ms" in dialog.said.text() and "pip install openvino" in dialog.wrong.text()
    dialog.reject()


def test_cancel_ends_it_and_nothing_is_stored(desk, out, answer):
    begun, ended = threading.Event(), threading.Event()

    def endless(device, result, folder, *, is_trusted, tell, started):
        try:
            while True:
                tell({"kind": "progress", "detail": "round 1 of 2", "fraction": None})
                begun.set()
        finally:
            ended.set()

    answer(endless)
    dialog = measured(desk)
    desk.bot.waitUntil(begun.is_set)
    assert dialog.end_button.text() == "Cancel"
    dialog.reject()
    assert ended.is_set() and not any(run.devices for run in run_in(out).runs)


def test_it_goes_on_when_the_window_of_the_panel_that_began_it_is_closed(desk, out, answer):
    begun, may_end = threading.Event(), threading.Event()

    def slow(*given, **more):
        begun.set()
        may_end.wait(10)
        return two_figures(*given, **more)

    answer(slow)
    desk.window.workbench.move_panel("results", None)
    dialog = measured(desk)
    desk.bot.waitUntil(begun.is_set)
    desk.window.workbench._windows["results"].close()
    desk.settle()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    may_end.set()
    desk.bot.waitUntil(lambda: dialog.end_button.text() == "Close")
    assert [len(run.devices) for run in run_in(out).runs][:2] == [1, 1]
    dialog.reject()


def test_what_went_wrong_is_said(desk, out, answer):
    def refuse(device, result, folder, *, is_trusted, tell, started):
        raise AceError(LOST)

    answer(refuse)
    dialog = measured(desk)
    desk.bot.waitUntil(lambda: dialog.end_button.text() == "Close")
    assert dialog.step.text() == "Nothing was measured" and LOST.what in dialog.wrong.text()
    dialog.reject()


def test_artifacts_of_another_run_are_not_measured(desk, out, answer):
    answer(lambda *given, **more: pytest.fail("it was measured"))
    (out / "result.json").unlink()
    dialog = measured(desk)
    desk.bot.waitUntil(lambda: dialog.end_button.text() == "Close")
    assert "There is no finished result" in dialog.wrong.text()
    dialog.reject()


def test_this_machine_is_not_offered_while_a_job_is_at_work(desk, out):
    desk.session.devices.add("box", "user@box", "")
    panel = desk.panel("results")
    panel.measure_menu.aboutToShow.emit()
    offered = [each.text() for each in panel.measure_menu.actions() if not each.isSeparator()]
    assert offered == ["here", "box", "Devices to measure on…"]
    assert THIS_MACHINE.kind is DeviceKind.LOCAL and panel.measure_menu.actions()[0].isEnabled()
    desk.session._state.change(activity=Activity(state=EngineState.BUSY, verb=JobKind.RUN))
    panel._offer_devices()
    assert [each.isEnabled() for each in panel.measure_menu.actions()[:2]] == [False, True]
    panel.measure_menu.actions()[-1].trigger()
    (dialog,) = desk.window.findChildren(DevicesDialog)
    assert dialog.isVisible()
    dialog.reject()
