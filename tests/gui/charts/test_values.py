"""The values of an op: asked for in Details, drawn by a chart, read by the mouse, saved as a file."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog

from ace_studio.gui.charts.values import read_cell
from ace_studio.records.messages import ValuesFound, ValuesRequest
from ace_studio.records.values import BINS, OpValues, Statistics, TensorValues, Tiles, ValuePicture
from tests.gui.charting import place_of


def statistics(mean):
    return Statistics(
        low=-1.0, high=1.0, mean=mean, std=0.5, zeros=0.25, not_finite=0, counts=(3,) * BINS, first=(0.5, mean)
    )


def tensor_of(name, channels=()):
    levels = bytes(range(1, 13)) + bytes(12)
    pictures = tuple(ValuePicture(low=-1.0, high=1.0, levels=levels) for _ in range(3))
    return TensorValues(
        name=name, shape=(1, 3, 4, 2), dtype="float32", low=-1.0, high=1.0, original=statistics(0.1),
        compressed=statistics(0.2), sqnr_db=31.0, largest_difference=0.125, channels=channels,
        tiles=Tiles(count=3, total=3, across=2, height=4, width=2, rows=40, columns=20), pictures=pictures,
    )  # fmt: skip


def answer(desk, *tensors):
    values = OpValues(
        op_id="linear_1", precision="int8-static", example=0, examples=2, notes=("simulated",),
        tensors=tensors or (tensor_of("result"), tensor_of("fc.weight", channels=((-1.0, 1.0), (-0.5, 0.0)))),
    )  # fmt: skip
    job, fingerprint = desk.engine.requests[-1].job, desk.document.fingerprint
    desk.session.apply(ValuesFound(job=job, fingerprint=fingerprint, values=values))
    desk.settle()


@pytest.fixture
def answered(desk, compared_graph):
    """Details of an op, with its values asked for by a click and answered."""
    ask(desk)
    answer(desk)
    return desk


def ask(desk):
    details = desk.panel("details")
    desk.session.view.select(("linear_1",))
    desk.settle()
    desk.bot.mouseClick(details.values_button, Qt.MouseButton.LeftButton)
    desk.settle()
    request = desk.engine.requests[-1]
    assert isinstance(request, ValuesRequest) and request.op_id == "linear_1"


def test_a_click_shows_float_compressed_and_difference_and_the_numbers_can_be_copied(answered):
    charts = answered.window.workbench.panel("charts")
    assert charts.isVisible() and charts.chart_id == "values"
    view = charts.views["values"]
    assert [chart.isVisible() for chart in view.pictures] == [True] * 3
    assert "31.0 dB" in view._about.text() and view._notes.text() == "simulated"
    details = answered.panel("details")
    answered.bot.mouseClick(details.copy_button, Qt.MouseButton.LeftButton)
    copied = QApplication.clipboard().text()
    assert "Values: result, example 1 of 2" in copied and "ranges of channels\t0.5 … 2 wide" in copied
    answered.session.view.select(("act_1",))
    answered.settle()
    answered.bot.mouseClick(details.copy_button, Qt.MouseButton.LeftButton)
    assert "Values" not in QApplication.clipboard().text()


def test_the_mouse_reads_the_element_under_it_and_the_bar_under_it(answered):
    view = answered.window.workbench.panel("charts").views["values"]
    answered.bot.mouseMove(view.pictures[0].widget, place_of(view.pictures[0], 2.5, 1.5))
    answered.bot.wait(20)
    assert view.pictures[0]._reading.text() == "channel 1 [10, 0]\n-0.953"
    answered.bot.mouseMove(view.histogram.widget, place_of(view.histogram, 0.01, 1.0))
    answered.bot.wait(20)
    assert view.histogram._reading.text().endswith("float 3, compressed 3")


@pytest.mark.parametrize(("height", "width"), [(2, 32), (32, 2)])
def test_all_of_a_wide_or_tall_matrix_is_in_sight(answered, height, width):
    ask(answered)
    tiles = Tiles(count=1, total=1, across=1, height=height, width=width, rows=height, columns=width)
    pictures = (ValuePicture(low=-1.0, high=1.0, levels=bytes(range(1, 65))),)
    found = replace(tensor_of("result"), tiles=tiles, pictures=pictures)
    answer(answered, found)
    (chart, *_) = answered.window.workbench.panel("charts").views["values"].pictures
    (left, right), (low, high) = chart.plot.viewRange()
    assert left <= 0 and right >= width and low <= 0 and high >= height


def test_a_cell_where_nothing_is_has_no_value():
    found = tensor_of("result")
    assert read_cell(found, found.pictures[0], 0, 5) == "" and read_cell(found, found.pictures[0], 0, 99) == ""


def test_another_example_and_a_file_are_asked_for_without_leaving_the_chart(answered, monkeypatch):
    view = answered.window.workbench.panel("charts").views["values"]
    view.example.setCurrentIndex(1)
    view.example.activated.emit(1)
    answered.settle()
    assert answered.engine.requests[-1].example == 1
    answer(answered)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("/tmp/linear.npz", ""))
    answered.bot.mouseClick(view.save_button, Qt.MouseButton.LeftButton)
    assert answered.engine.requests[-1].save == "/tmp/linear.npz"
