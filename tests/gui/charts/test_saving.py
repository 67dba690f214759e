"""A chart as a file: a picture (PNG, SVG), or the figures in it (CSV)."""

import csv

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog

from ace_studio.gui.charts.saving import save_chart
from ace_studio.gui.panels.charts import CHARTS
from ace_studio.records.results import Improvement
from tests.gui.charting import open_chart
from tests.gui.charts.test_values import answer
from tests.gui.comparing import two_plans
from tests.gui.run_results import TABLE, result_of, show_result


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


ROWS = {
    "overview": "Size in MB,onnxruntime,10.0,0.0,",
    "trade-off": "accuracy drop against latency,,4.0,0.2,",
    "time": '"Time by operator, ms",openvino,0.4,0.0,"openvino: linear, 0.4000 ms',
    "roofline": "linear_0,int8-static,0.9765625,0.04",
    "error": ",,2.0,38.0,onnxruntime",
    "sensitivity": "stem_linear,int8-static,12.0",
    "values": "-1.0,-0.96875,3,3",
    "transitions": "int8-static,fp32,1",
    "weights": "equalize,,20.0,24.5,yes,",
    "worst": "openvino,7,evaluation,0.5,9.0,cat",
    "differences": ',,1.0,10.0,"latency: baseline: 1.00×',
}
"""A part of the file of each chart."""


@pytest.fixture
def drawn(desk, charts, request):
    """A chart that has something to draw."""
    match request.param:
        case "values":
            desk.session.jobs.show_values("linear_1")
            answer(desk)
        case "weights":
            tried = Improvement(method="equalize", before_db=20.0, after_db=24.5, kept=True, reason="better")
            show_result(desk, TABLE, result_of(TABLE, improvements=(tried,)))
        case "differences":
            desk.engine.by_itself = True
            two_plans(desk)
    view = open_chart(desk, desk.panel("charts"), request.param)
    if request.param == "weights":
        view.which.setCurrentIndex(1)
        view.draw_again()
    assert not view.missing(desk.document)
    return view


@pytest.mark.parametrize("drawn", [chart.id for chart in CHARTS], indirect=True)
def test_the_figures_of_every_chart_are_saved(drawn, tmp_path, request):
    save_chart(drawn, tmp_path / "chart.csv")
    text = (tmp_path / "chart.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))
    assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}
    assert ROWS[request.node.callspec.params["drawn"]] in text
