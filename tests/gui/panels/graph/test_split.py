"""The split graph: two views of one graph, one selection, each with blocks and place of its own."""

import pytest

from ace_studio.records.results import CaptureReport
from tests.gui.gestures import open_block
from tests.gui.graph_tables import layered_table

TABLE = layered_table(4)


@pytest.fixture
def graph(trusted):
    trusted.window.resize(1600, 1000)
    trusted.capture(TABLE, CaptureReport(rung="export", ops=1, seconds=1.0))
    trusted.do("split-graph")
    return trusted.window.workbench.panel("graph")


def scale_and_open(view):
    return view.canvas.camera.scale, int(view.picture.arrangement._open.sum())


def test_the_second_view_shows_the_same_graph_and_colours(desk, graph):
    assert graph.second.isVisible()
    assert graph.second.picture.table is graph.view.picture.table
    graph.show_colouring("planned")
    desk.settle()
    assert graph.second.picture.colouring is graph.view.picture.colouring


def test_what_is_selected_in_one_view_is_selected_in_the_other(desk, graph):
    graph.second.set_selection(TABLE.op_id[:2])
    graph.second.selection_changed.emit(graph.second.selected_ops)
    desk.settle()
    assert graph.view.selected_ops == tuple(TABLE.op_id[:2])
    desk.session.view.select([TABLE.op_id[3]])
    desk.settle()
    assert graph.second.selected_ops == (TABLE.op_id[3],)


def test_blocks_and_place_of_one_view_are_not_those_of_the_other(desk, graph):
    before = scale_and_open(graph.view)
    open_block(graph.second, "layers.0")
    graph.second.zoom_by(2.0)
    desk.settle()
    assert scale_and_open(graph.view) == before
    assert scale_and_open(graph.second) != before


def test_a_new_graph_is_shown_in_both(desk, graph):
    other = layered_table(6)
    desk.captured(other, CaptureReport(rung="export", ops=1, seconds=1.0))
    assert graph.second.picture.table is graph.view.picture.table is other


def test_split_and_comparison_take_turns(desk, graph):
    desk.do("compare-graph")
    assert (graph.second.isVisible(), graph.compare.isVisible()) == (False, True)
    desk.do("split-graph")
    assert (graph.second.isVisible(), graph.compare.isVisible()) == (True, False)
    desk.do("split-graph")
    assert not graph.second.isVisible()
    assert graph.view.shows_map
