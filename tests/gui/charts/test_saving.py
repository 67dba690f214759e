"""A chart as a file: a picture (PNG, SVG), or the figures in it (CSV)."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog


@pytest.mark.parametrize("ending", ["png", "svg", "csv"])
def test_a_chart_is_saved_as_a_picture_or_as_its_figures(desk, charts, tmp_path, monkeypatch, ending):
    target = tmp_path / f"chart.{ending}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    desk.bot.mouseClick(charts.save_button, Qt.MouseButton.LeftButton)
    desk.settle()
    if ending == "csv":
        assert "onnxruntime,2.0,0.0," in target.read_text(encoding="utf-8")
    elif ending == "svg":
        assert "onnxruntime" in target.read_text(encoding="utf-8")
    else:
        assert QImage(str(target)).width() == 2 * charts.views["overview"].width()


def test_an_unknown_ending_is_said(desk, charts, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "chart.doc"), ""))
    desk.bot.mouseClick(charts.save_button, Qt.MouseButton.LeftButton)
    assert "chart.doc" in desk.document.problems[-1].what
