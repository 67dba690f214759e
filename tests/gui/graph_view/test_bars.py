"""The breadcrumbs, the search with its count, and the note about the layout of a large graph."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from ace_studio.gui.graph_view import Colouring
from ace_studio.gui.graph_view import view as view_module
from tests.gui.graph_tables import large_table, layered_table
from tests.gui.looking import SHIFT, block, middle, row


def test_breadcrumbs_lead_to_the_blocks_around_the_current_op(view, qtbot):
    view.reveal("act_2")
    assert view.breadcrumbs.names == ("Net", "layers", "2", "mlp", "gelu")
    with qtbot.waitSignal(view.canvas.camera_moved):
        view.breadcrumbs.block_wanted.emit(block(view, "layers"))
    assert view.canvas.current == block(view, "layers")


def test_a_broken_pattern_is_said_and_finds_nothing(view):
    assert view.search("/(/") == ()
    assert "not a pattern" in view.search_bar.count.text()


def test_next_and_previous_open_what_hides_a_match_and_go_round(view, qtbot):
    view.focus_search()
    qtbot.keyClicks(view.search_bar.field, "gelu")
    assert "5 found" in view.search_bar.count.text()
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return)
    assert view.selected_ops == ("act_0",)
    assert view.picture.scene.visible[row(view, "act_0")]
    assert view.canvas.rect().contains(middle(view, row(view, "act_0")))
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return, SHIFT)
    assert view.selected_ops == ("act_4",)
    assert view.search_bar.count.text() == "5 of 5"


@pytest.fixture
def large(view):
    view.show_graph(large_table(3000))
    return view


def test_a_large_graph_is_laid_out_in_the_background_and_the_note_counts_its_ops(large, laid_out):
    note = large.layout_note
    assert large.picture is None
    assert note.isVisible()
    assert note.words.text() == "Laying out 3,000 ops …"
    assert "Laying out" in large.canvas.accessibleDescription()
    laid_out(large)
    assert large.picture.table.op_count == 3000
    assert note.isHidden()


def test_a_graph_past_the_limit_is_laid_out_only_if_the_button_is_pressed(view, laid_out, monkeypatch):
    monkeypatch.setattr(view_module, "MOST_ROWS_UNASKED", 2500)
    view.show_graph(large_table(3000))
    note = view.layout_note
    assert note.isVisible() and note.words.text().startswith("3,000 ops: too many")
    assert note.button.text() == "Lay it out" and not view.canvas._background.is_working
    QTest.mouseClick(note.button, Qt.MouseButton.LeftButton)
    assert note.words.text() == "Laying out 3,000 ops …"
    laid_out(view)
    assert view.picture is not None and note.isHidden()
    view.show_graph(large_table(3000))
    view.show_graph(large_table(100))
    assert view.picture is not None and note.isHidden()


def test_escape_stops_the_layout_and_the_button_asks_for_it_again(large, laid_out):
    large.canvas.setFocus()
    QTest.keyClick(large.canvas, Qt.Key.Key_Escape)
    assert large.picture is None
    assert large.layout_note.words.text() == "The graph is not laid out"
    QTest.mouseClick(large.layout_note.button, Qt.MouseButton.LeftButton)
    assert large.layout_note.button.text() == "Stop"
    laid_out(large)
    assert large.picture is not None


def test_a_newer_graph_supersedes_one_that_is_being_laid_out(large, laid_out, qtbot):
    newer = layered_table(3)
    large.show_graph(newer)
    assert large.picture.table is newer
    assert large.layout_note.isHidden()
    qtbot.wait(300)
    assert large.picture.table is newer


def test_what_is_chosen_while_a_graph_is_laid_out_is_shown_in_it(large, laid_out):
    chosen = Colouring.from_labels("half", {"x": "first"})
    large.set_colouring(chosen)
    laid_out(large)
    assert large.picture.colouring is chosen


def test_many_blocks_open_in_the_background_and_escape_leaves_them_closed(large, laid_out):
    laid_out(large)
    before = large.picture.scene
    large.canvas.open_everything()
    assert large.picture.scene is before
    assert large.layout_note.isVisible()
    large.canvas.setFocus()
    QTest.keyClick(large.canvas, Qt.Key.Key_Escape)
    assert large.layout_note.isHidden()
    assert large.picture.scene is before
    assert not any(
        large.picture.arrangement.is_open(block)
        for block in range(large.picture.tree.root + 1, large.picture.tree.node_count)
        if not before.visible[block]
    )


def test_what_is_opened_and_closed_meanwhile_is_done_together(large, laid_out):
    laid_out(large)
    tree, done = large.picture.tree, []
    blocks = large.picture.arrangement.inner_blocks(tree.root)
    large.canvas.set_open(blocks, to=True, then=lambda: done.append("opened"))
    large.canvas.set_open(blocks[-1:], to=False, then=lambda: done.append("closed"))
    laid_out(large)
    is_open = large.picture.arrangement.is_open
    assert not is_open(blocks[-1])
    assert all(is_open(block) for block in blocks[:-1])
    assert done == ["opened", "closed"]


def test_an_op_that_is_revealed_in_a_large_block_is_current_when_it_is_there(large, laid_out):
    laid_out(large)
    large.canvas.open_everything()
    op_id = large.picture.table.op_id[2000]
    large.reveal(op_id)
    laid_out(large)
    row = large.picture.rows_of([op_id])[0]
    assert large.picture.scene.visible[row]
    assert large.canvas.current == row
