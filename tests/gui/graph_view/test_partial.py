"""Breaks and subgraphs of a partial capture, as the picture shows them."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from ace_studio.gui.graph_view import GraphView
from ace_studio.gui.graph_view.colours import luminance
from ace_studio.gui.graph_view.frames import title_of_block
from ace_studio.gui.graph_view.tooltips import tooltip_of
from ace_studio.gui.style.theme import DARK, LIGHT
from tests.gui.graph_tables import layered_table, partial_capture, without_breaks


@pytest.fixture
def view(qtbot):
    widget = GraphView()
    qtbot.addWidget(widget)
    widget.resize(1200, 900)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def row(view, op_id):
    return view.picture.rows_of([op_id])[0]


def middle(view, node):
    scene, camera = view.picture.scene, view.canvas.camera
    place = camera.to_screen(scene.x[node] + scene.width[node] / 2, scene.y[node] + scene.height[node] / 2)
    return QPoint(round(place[0]), round(place[1]))


def count_of(image, colour):
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    data = np.frombuffer(pixels.constBits(), dtype=np.uint32) & 0xFFFFFF
    return int((data == int(colour[1:], 16)).sum())


def test_a_click_on_a_seam_selects_the_break(view, qtbot):
    view.show_graph(*partial_capture(4))
    with qtbot.waitSignal(view.selection_changed) as told:
        QTest.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=middle(view, row(view, "break_1")))
    assert told.args == [("break_1",)]


@pytest.mark.parametrize("scale", [0.05, 0.15, 0.3, 1.0])
@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_breaks_are_seen_from_any_distance(view, scale, colours):
    view.set_theme(colours)
    view.show_graph(*partial_capture(4))
    view.zoom_by(scale / view.canvas.camera.scale)
    if scale > 0.5:
        view.reveal("break_1")
    assert count_of(view.canvas.grab().toImage(), colours.seam) > 10


def test_the_number_of_a_break_is_readable_in_both_themes():
    for colours in (DARK, LIGHT):
        shades = sorted(luminance(each) for each in (colours.seam, colours.window))
        assert (shades[1] + 0.05) / (shades[0] + 0.05) > 3


def test_rows_of_one_line_carry_the_same_number(view):
    view.show_graph(*partial_capture(4, lines=(10, 20, 10)))
    seams = view.picture.partial.seams
    assert [seams[row(view, f"break_{at}")].number for at in range(3)] == [1, 2, 1]
    assert "×2" in seams[row(view, "break_0")].facts
    assert view.picture.titles(row(view, "break_1"))[0] == "break 2"


def test_the_line_of_a_seam_is_as_wide_as_the_subgraphs_beside_it(view):
    view.show_graph(*partial_capture(2, layers=0, ops=2))
    view.canvas.open_everything()
    scene = view.picture.scene
    ((_, left, right, _),) = view.picture.seam_spans.tolist()
    subgraphs = [node for node in scene.frames.tolist() if node in view.picture.partial.subgraph_of_block]
    assert left <= min(scene.x[node] for node in subgraphs)
    assert right >= max(scene.x[node] + scene.width[node] for node in subgraphs)


def test_subgraphs_that_stay_eager_look_and_read_differently(view):
    table, capture = partial_capture(3, eager=(1,))
    view.show_graph(table, capture)
    (eager,) = view.picture.partial.eager_blocks
    stage = view.canvas._stage(None, view.picture)
    captured = next(block for block in view.picture.partial.subgraph_of_block if block != eager)
    assert "stays eager" in title_of_block(stage, eager)[1]
    assert "stays eager" not in title_of_block(stage, captured)[1]
    assert "it draws random numbers" in tooltip_of(view.picture, eager)
    hatched = view.canvas.grab().toImage()
    view.show_graph(*partial_capture(3))
    assert count_of(hatched, DARK.eager) > count_of(view.canvas.grab().toImage(), DARK.eager)


def test_the_tooltip_of_a_break_says_reason_line_and_cost(view):
    view.show_graph(*partial_capture(3, lines=(10, 10)))
    tip = tooltip_of(view.picture, row(view, "break_0"))
    for words in (
        "Break 1",
        "a branch depends on a value",
        "net.py:10",
        "if scores.max()",
        "2 times",
        "2 ops run eagerly",
    ):
        assert words in tip.replace("&gt;", ">")


def test_the_search_finds_breaks_by_the_word_and_by_their_reason(view):
    view.show_graph(*partial_capture(3))
    assert view.search("break") == ("break_0", "break_1")
    assert view.search("print()") == ("break_1",)
    view.search_next()
    assert view.selected_ops == ("break_1",)


def test_the_legend_explains_breaks_and_subgraphs_only_where_there_are_some(view):
    view.show_graph(*partial_capture(4, eager=(2,)))
    said = [each.text() for each in view.legend.findChildren(QLabel) if each.isVisible() and each.text()]
    assert said == ["break: Python runs here  3", "captured subgraph  3", "subgraph that stays eager  1"]
    view.show_graph(layered_table(3))
    assert not [each for each in view.legend._notes if each.isVisible()]


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_graph_in_subgraphs_can_be_saved(view, tmp_path, ending):
    view.show_graph(*partial_capture(5, eager=(1,)))
    path = tmp_path / f"graph.{ending}"
    view.export(path)
    if ending == "svg":
        text = path.read_text(encoding="utf-8")
        assert "a branch depends on a value" in text
        assert "stroke-dasharray" in text
    assert path.stat().st_size > 2000


def test_keys_walk_over_a_seam_from_subgraph_to_subgraph(view, qtbot):
    view.show_graph(*partial_capture(3))
    view.canvas.close_everything()
    qtbot.keyClick(view.canvas, Qt.Key.Key_Home)
    walked = []
    for _ in range(4):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
        walked.append(view.picture.titles(view.canvas.current)[0])
    assert walked == ["p0 · stage0", "break 1", "p1 · stage1", "break 2"]


def test_a_run_of_identical_subgraphs_looks_like_a_subgraph_and_is_counted_subgraph_by_subgraph(view):
    table, capture = without_breaks(*partial_capture(6))
    view.show_graph(table, capture)
    partial = view.picture.partial
    assert len(partial.subgraph_of_block) == 6
    (stack,) = partial.looks_like_subgraph - set(partial.subgraph_of_block)
    assert view.picture.tree.repeats[stack - view.picture.tree.root] == 6
    said = [each.text() for each in view.legend.findChildren(QLabel) if each.isVisible() and each.text()]
    assert said == ["captured subgraph  6"]
