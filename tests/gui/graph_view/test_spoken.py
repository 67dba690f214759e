"""The graph for screen readers: every box is an element, and the current one has the focus."""

import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible

from ace_studio.gui.graph_view.canvas import GraphCanvas

Text = QAccessible.Text


def heard(canvas):
    graph = QAccessible.queryAccessibleInterface(canvas)
    return [graph.child(at) for at in range(graph.childCount())]


def canvas_of(desk):
    desk.traced()
    canvas = desk.window.workbench.panel("graph").view.canvas
    desk.window.activateWindow()
    canvas.setFocus()
    desk.bot.waitUntil(canvas.hasFocus)
    return canvas


def test_every_box_is_an_element_with_its_name_its_place_and_its_neighbours(desk):
    canvas = canvas_of(desk)
    boxes = heard(canvas)
    assert len(boxes) == len(canvas.picture.scene.boxes)
    first, second = boxes[0], boxes[1]
    assert first.text(Text.Name).startswith("pixels, s0×1×8×8 · f32")
    assert first.text(Text.Description) == f"Read by {second.text(Text.Name).split(',')[0]}"
    graph = QAccessible.queryAccessibleInterface(canvas)
    assert graph.rect().contains(first.rect().center())
    middle = first.rect().center()
    assert graph.indexOfChild(graph.childAt(middle.x(), middle.y())) == 0
    assert first.parent().text(Text.Name) == "Graph of DigitNet"


def test_the_current_box_has_the_focus_and_is_told_as_the_arrow_keys_move(desk):
    canvas = canvas_of(desk)
    graph = QAccessible.queryAccessibleInterface(canvas)
    assert graph.focusChild() is None
    desk.bot.keyClick(canvas, Qt.Key.Key_Home)
    assert graph.focusChild().text(Text.Name).startswith("pixels")
    desk.bot.keyClick(canvas, Qt.Key.Key_Down)
    here = graph.focusChild()
    assert "Sequential" in here.text(Text.Name) and here.text(Text.Description).startswith("Reads from pixels")
    assert here.state().focused and here.state().selected
    assert not graph.child(0).state().focused


def test_boxes_of_a_graph_that_is_gone_say_nothing(desk):
    canvas = canvas_of(desk)
    graph = QAccessible.queryAccessibleInterface(canvas)
    number = len(canvas.picture.table)
    assert graph.childCount() and not graph.shows(number + 1000)
    block = next(int(node) for node in canvas.picture.scene.boxes if node >= number)
    closed = graph.box(block)
    assert closed.isValid()
    canvas.set_open([block], to=True)
    assert not closed.isValid() and closed.text(Text.Name) == "" and closed.rect().isEmpty()
    canvas.show_picture(None)
    assert graph.childCount() == 0


def test_a_canvas_that_is_gone_has_no_boxes(desk, qtbot):
    canvas = GraphCanvas()
    canvas.show_picture(canvas_of(desk).picture)
    graph = QAccessible.queryAccessibleInterface(canvas)
    kept, first = canvas.spoken, graph.child(0)
    assert first.isValid()
    shiboken6.delete(canvas)
    assert not kept.shows(0) and kept.childCount() == 0
