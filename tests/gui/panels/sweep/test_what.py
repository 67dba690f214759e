from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from ace_studio.records.sweeps import Axis
from tests.gui.panels.sweep.typing_axes import typed


def write(desk, text):
    field = desk.sweep.exclusions.field
    field.setFocus()
    field.selectAll()
    desk.bot.keyClicks(field, text)
    desk.bot.keyClick(field, Qt.Key.Key_Return)
    desk.settle()


def test_combinations_are_left_out_as_they_are_written(sweeping):
    typed(sweeping, Axis.PLAN, "fp32, bf16")
    typed(sweeping, Axis.THREADS, "1, 2")
    write(sweeping, "plan = fp32, threads = 2")
    assert sweeping.document.sweep.sweep.exclude == ({"plan": "fp32", "threads": 2},)
    assert "3 jobs (1 excluded)" in sweeping.sweep.forecast.text()
    write(sweeping, "plan = int8-static")
    assert "int8-static" in sweeping.sweep.exclusions.field.toolTip()
    assert sweeping.sweep.exclusions.field.property("role") == "bad"
    assert len(sweeping.document.sweep.sweep.exclude) == 1


def test_recipes_are_added_and_removed(sweeping, tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(f'format = 1\n[model]\nsource = "{name}.onnx"\n')
    (tmp_path / "s.toml").write_text('format = 1\nrecipes = ["a.toml"]\n')
    panel = sweeping.sweep
    assert not panel.recipes.list.isVisibleTo(panel)
    sweeping.session.sweep.open_file(tmp_path / "s.toml")
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(tmp_path / "b.toml")], ""))
    panel.recipes.add_button.click()
    sweeping.settle()
    shown = [panel.recipes.list.item(at).text() for at in range(panel.recipes.list.count())]
    assert shown == ["a.toml", "b.toml"]
    assert not panel.recipes.remove_button.isEnabled()
    panel.recipes.list.item(0).setSelected(True)
    panel.recipes.remove_button.click()
    sweeping.settle()
    assert sweeping.document.sweep.sweep.recipes == ("b.toml",)
