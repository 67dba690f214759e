"""The bar above the graph while edges are highlighted."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.records.results import CaptureReport
from ace_studio.session.document import EdgeChoice
from tests.gui.graph_tables import layered_table
from tests.gui.run_results import show_result

TABLE = layered_table(3)


REPORT = CaptureReport(rung="export", ops=1, seconds=1.0)


@pytest.fixture
def graph_with_run(trusted):
    trusted.window.resize(1500, 1000)
    trusted.capture(TABLE, REPORT)
    show_result(trusted, TABLE)
    return trusted.panel("graph")


def click_cell(desk, source, target):
    view = desk.panel("charts").show_chart("transitions")
    desk.settle()
    names = [view.table.verticalHeaderItem(at).text() for at in range(view.table.rowCount())]
    item = view.table.item(names.index(source), names.index(target))
    place = view.table.visualItemRect(item).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()


def test_a_click_on_a_cell_of_the_matrix_marks_the_edges_and_escape_goes_back(desk, graph_with_run):
    graph_with_run.view.canvas.open_everything()
    click_cell(desk, "int8-static", "fp32")
    assert desk.document.selection.edges.edges == (("add_0", "linear_1"),)
    assert desk.document.selection.op_ids == ("add_0", "linear_1")
    assert graph_with_run.edge_bar.isVisible()
    assert graph_with_run.edge_bar.words.text() == "1 edge from int8-static to fp32"
    picture = graph_with_run.view.picture
    assert picture.edges.segments(picture.scene).any()
    # What no such edge touches is dimmed.
    boxes = picture.scene.boxes
    touched = {int(picture.scene.stands_for[row]) for row in picture.rows_of(("add_0", "linear_1"))}
    assert {int(box) for box in boxes[~picture.dimmed(boxes)]} == touched
    graph_with_run.view.canvas.setFocus()
    desk.bot.keyClick(graph_with_run.view.canvas, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.document.selection.edges is None
    assert not graph_with_run.edge_bar.isVisible()
    assert not picture.dimmed(boxes).any()
    assert desk.document.selection.op_ids == ("add_0", "linear_1")


def test_other_ops_are_selected_while_the_edges_stay_and_the_button_goes_back(desk, graph_with_run):
    click_cell(desk, "int8-static", "fp32")
    desk.session.view.select(["linear_0"])
    desk.settle()
    assert graph_with_run.edge_bar.isVisible()
    desk.bot.mouseClick(graph_with_run.edge_bar.back, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not graph_with_run.edge_bar.isVisible()
    assert graph_with_run.view.picture.edges is None


def test_the_edges_are_walked_one_by_one_and_what_hides_them_is_opened(desk, graph_with_run):
    graph_with_run.view.canvas.close_everything()
    click_cell(desk, "int8-static", "int8-static")
    count = len(desk.document.selection.edges.edges)
    assert "inside closed blocks" in graph_with_run.edge_bar.words.text()
    assert graph_with_run.edge_bar.open.isVisible()
    seen = []
    for _ in range(count):
        desk.bot.mouseClick(graph_with_run.edge_bar.next, Qt.MouseButton.LeftButton)
        desk.settle()
        seen.append(desk.document.selection.op_ids)
        assert all(
            graph_with_run.view.picture.scene.visible[row] for row in graph_with_run.view.picture.rows_of(seen[-1])
        )
    assert len(set(seen)) == count
    assert f"{count}: " in graph_with_run.edge_bar.words.text()
    assert not graph_with_run.edge_bar.open.isVisible()


def test_a_new_graph_ends_it(desk, graph_with_run):
    click_cell(desk, "int8-static", "fp32")
    desk.captured(layered_table(2), REPORT)
    assert desk.document.selection.edges is None
    assert not graph_with_run.edge_bar.isVisible()


def test_edges_of_ops_that_the_graph_does_not_have_are_left_out(desk, graph_with_run):
    desk.session.view.look_at_edges(EdgeChoice(edges=(("nowhere", "linear_1"),), words="of old"))
    desk.settle()
    assert graph_with_run.view.picture.edges is None
