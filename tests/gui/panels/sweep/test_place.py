from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog


def test_where_results_go_and_jobs_run_is_typed_or_chosen(sweeping, tmp_path, monkeypatch):
    place = sweeping.sweep.place
    place.out.setFocus()
    place.out.setText(str(tmp_path / "typed"))
    sweeping.bot.keyClick(place.out, Qt.Key.Key_Return)
    place.scheduler.setText("tcp://box:8786")
    sweeping.bot.keyClick(place.scheduler, Qt.Key.Key_Return)
    sweeping.settle()
    state = sweeping.document.sweep
    assert (state.out, state.scheduler) == (str(tmp_path / "typed"), "tcp://box:8786")
    assert not place.workers.isEnabled()
    assert "at tcp://box:8786" in sweeping.sweep.forecast.text()
    place.scheduler.setText("")
    sweeping.bot.keyClick(place.scheduler, Qt.Key.Key_Return)
    place.workers.setValue(3)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "chosen"))
    place.folder_button.click()
    assert (sweeping.document.sweep.out, sweeping.document.sweep.workers) == (str(tmp_path / "chosen"), 3)
