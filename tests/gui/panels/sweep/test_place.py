from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from ace_studio.gui.panels.sweep import axes as place_module


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


def test_the_address_of_mlflow_is_typed_where_that_is_installed(sweeping, monkeypatch):
    place = sweeping.sweep.place
    monkeypatch.setattr(place, "_has_mlflow", True)
    place.update_from(sweeping.document)
    place.mlflow.setText("http://box:5000")
    sweeping.bot.keyClick(place.mlflow, Qt.Key.Key_Return)
    sweeping.sweep.start_button.click()
    assert sweeping.link.orders[0].mlflow == "http://box:5000"


def test_without_mlflow_its_field_is_grey_and_says_why(sweeping, monkeypatch):
    monkeypatch.setattr(place_module, "has_mlflow", lambda: False)
    made = place_module.PlaceFields(sweeping.session)
    made.update_from(sweeping.document)
    assert not made.mlflow.isEnabled()
    assert "pip install mlflow" in made.mlflow.toolTip()
