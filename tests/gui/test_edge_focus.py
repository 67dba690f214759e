"""Edges that are looked at: marked along their whole way, in every state of the blocks, with a way back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import Qt

from ace_studio.gui.graph_layout import Arrangement
from ace_studio.gui.graph_layout.marking import marked_segments
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import EdgeChoice
from tests.gui.graph_tables import large_table, layered_table, tables
from tests.gui.run_results import show_result

TABLE = layered_table(3)
REPORT = CaptureReport(rung="export", ops=1, seconds=1.0)


@pytest.fixture
def graph(desk):
    desk.window.resize(1500, 1000)
    desk.captured(TABLE, REPORT)
    show_result(desk, TABLE)
    return desk.panel("graph")


def click_cell(desk, source, target):
    view = desk.panel("charts").show_chart("transitions")
    desk.settle()
    names = [view.table.verticalHeaderItem(at).text() for at in range(view.table.rowCount())]
    item = view.table.item(names.index(source), names.index(target))
    place = view.table.visualItemRect(item).center()
    desk.bot.mouseClick(view.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    desk.settle()


def test_a_click_on_a_cell_of_the_matrix_marks_the_edges_and_escape_goes_back(desk, graph):
    graph.view.canvas.open_everything()
    click_cell(desk, "int8-static", "fp32")
    assert desk.document.selection.edges.edges == (("add_0", "linear_1"),)
    assert desk.document.selection.op_ids == ("add_0", "linear_1")
    assert graph.edge_bar.isVisible()
    assert graph.edge_bar.words.text() == "1 edge from int8-static to fp32"
    picture = graph.view.picture
    assert picture.edges.segments(picture.scene).any()
    # What no such edge touches is dimmed.
    boxes = picture.scene.boxes
    touched = {int(picture.scene.stands_for[row]) for row in picture.rows_of(("add_0", "linear_1"))}
    assert {int(box) for box in boxes[~picture.dimmed(boxes)]} == touched
    graph.view.canvas.setFocus()
    desk.bot.keyClick(graph.view.canvas, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.document.selection.edges is None
    assert not graph.edge_bar.isVisible()
    assert not picture.dimmed(boxes).any()
    assert desk.document.selection.op_ids == ("add_0", "linear_1")


def test_other_ops_are_selected_while_the_edges_stay_and_the_button_goes_back(desk, graph):
    click_cell(desk, "int8-static", "fp32")
    desk.session.view.select(["linear_0"])
    desk.settle()
    assert graph.edge_bar.isVisible()
    desk.bot.mouseClick(graph.edge_bar.back, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not graph.edge_bar.isVisible()
    assert graph.view.picture.edges is None


def test_the_edges_are_walked_one_by_one_and_what_hides_them_is_opened(desk, graph):
    graph.view.canvas.close_everything()
    click_cell(desk, "int8-static", "int8-static")
    count = len(desk.document.selection.edges.edges)
    assert "inside closed blocks" in graph.edge_bar.words.text()
    assert graph.edge_bar.open.isVisible()
    seen = []
    for _ in range(count):
        desk.bot.mouseClick(graph.edge_bar.next, Qt.MouseButton.LeftButton)
        desk.settle()
        seen.append(desk.document.selection.op_ids)
        assert all(graph.view.picture.row_visible(row) for row in graph.view.picture.rows_of(seen[-1]))
    assert len(set(seen)) == count
    assert f"{count}: " in graph.edge_bar.words.text()
    assert not graph.edge_bar.open.isVisible()


def test_a_new_graph_ends_it(desk, graph):
    click_cell(desk, "int8-static", "fp32")
    desk.captured(layered_table(2), REPORT)
    assert desk.document.selection.edges is None
    assert not graph.edge_bar.isVisible()


def test_edges_of_ops_that_the_graph_does_not_have_are_left_out(desk, graph):
    desk.session.view.look_at_edges(EdgeChoice(edges=(("nowhere", "linear_1"),), words="of old"))
    desk.settle()
    assert graph.view.picture.edges is None


@settings(max_examples=40, deadline=None)
@given(tables(), st.data())
def test_an_edge_is_marked_exactly_where_it_is_drawn(table, data):
    arrangement = Arrangement(table)
    blocks = [block for block in arrangement.inner_blocks(arrangement.tree.root) if block != arrangement.tree.root]
    arrangement.open(data.draw(st.lists(st.sampled_from(blocks), unique=True)) if blocks else [])
    scene = arrangement.scene()
    edges = list(zip(table.edge_source, table.edge_target, strict=True))
    every = marked_segments(arrangement.tree, scene, *np.array(edges, dtype=np.int64).reshape(-1, 2).T)
    # All edges together are all lines, and none of them is none.
    assert every.all()
    assert not marked_segments(arrangement.tree, scene, np.zeros(0, np.int64), np.zeros(0, np.int64)).any()
    for source, target in edges[:6]:
        found = marked_segments(arrangement.tree, scene, np.array([source]), np.array([target]))
        is_inside = scene.stands_for[source] == scene.stands_for[target]
        assert bool(found.any()) != bool(is_inside)
        ends = {int(scene.stands_for[source]), int(scene.stands_for[target])}
        touched = {int(n) for n in (*scene.segment_source[found], *scene.segment_target[found]) if n >= 0}
        assert is_inside or ends <= touched
        assert touched <= set(arrangement.tree.chain(source)) | set(arrangement.tree.chain(target))


def test_marking_hundreds_of_edges_of_two_thousand_ops_takes_a_few_milliseconds():
    table = large_table(2000)
    arrangement = Arrangement(table)
    arrangement.open(arrangement.inner_blocks(arrangement.tree.root))
    scene = arrangement.scene()
    source, target = (np.array(column[::3], dtype=np.int64) for column in (table.edge_source, table.edge_target))
    took = []
    for _ in range(3):
        start = time.process_time()
        marked_segments(arrangement.tree, scene, source, target)
        took.append(time.process_time() - start)
    assert min(took) < 0.03
