"""The graph view with real widgets: gestures, keys, selection, search, colours, levels of detail, files."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from ace_studio.gui.graph_view import DARK, LIGHT, Colouring, GraphView
from ace_studio.gui.graph_view.colours import blend, luminance, text_on
from ace_studio.gui.graph_view.gestures import inside_polygon
from ace_studio.gui.graph_view.menu import fill_menu
from ace_studio.gui.graph_view.painting import EMPTY_TEXT
from ace_studio.gui.graph_view.search import SearchIndex
from ace_studio.gui.graph_view.tooltips import tooltip_of
from ace_studio.records.errors import AceError
from ace_studio.records.ops import OpFamily
from tests.gui.graph_tables import large_table, layered_table, table_of

LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT, CTRL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)


@pytest.fixture
def view(qtbot):
    widget = GraphView()
    qtbot.addWidget(widget)
    widget.resize(1000, 800)
    widget.show_graph(layered_table(5))
    widget.show()
    qtbot.waitExposed(widget)
    widget.fit()
    return widget


def block(view, path):
    return view.picture.tree.block_of_path(path)


def row(view, op_id):
    return view.picture.rows_of([op_id])[0]


def corner(view, node):
    scene, camera = view.picture.scene, view.canvas.camera
    return np.array(camera.to_screen(scene.x[node], scene.y[node]))


def middle(view, node):
    scene, camera = view.picture.scene, view.canvas.camera
    x = scene.x[node] + scene.width[node] / 2
    on_title = view.picture.arrangement.is_open(node)
    y = scene.y[node] + (12 if on_title else scene.height[node] / 2)
    place = camera.to_screen(x, y)
    return QPoint(round(place[0]), round(place[1]))


def click(view, node, keys=NONE):
    QTest.mouseClick(view.canvas, LEFT, keys, middle(view, node))


def picture_of(view):
    return view.canvas.grab().toImage()


def colours_in(image):
    pixels = image.convertToFormat(QImage.Format.Format_RGB32)
    data = np.frombuffer(pixels.constBits(), dtype=np.uint32)
    return {f"#{value & 0xFFFFFF:06x}" for value in np.unique(data).tolist()}


def drag(view, places, keys):
    QTest.mousePress(view.canvas, LEFT, keys, places[0])
    for place in places[1:]:
        QTest.mouseMove(view.canvas, place)
    QTest.mouseRelease(view.canvas, LEFT, keys, places[-1])


# Opening and closing


@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0])
def test_a_double_clicked_block_opens_and_closes_and_stays_within_a_pixel(view, scale):
    layers = block(view, "layers")
    view.zoom_by(scale / view.canvas.camera.scale)
    view.canvas.show_node(layers)
    before = corner(view, layers)
    QTest.mouseDClick(view.canvas, LEFT, NONE, middle(view, layers))
    assert view.picture.arrangement.is_open(layers)
    assert np.abs(corner(view, layers) - before).max() <= 1.0
    QTest.mouseDClick(view.canvas, LEFT, NONE, middle(view, layers))
    assert not view.picture.arrangement.is_open(layers)
    assert np.abs(corner(view, layers) - before).max() <= 1.0


def test_an_opened_inner_block_stays_where_it_was(view):
    view.open_block("layers")
    inner = block(view, "layers.3")
    view.canvas.show_node(inner)
    before = corner(view, inner)
    view.canvas.toggle(inner)
    assert np.abs(corner(view, inner) - before).max() <= 1.0


def test_backspace_closes_the_block_around_the_current_op(view, qtbot):
    view.open_block("layers.2")
    view.canvas.set_current(row(view, "add_2"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert not view.picture.arrangement.is_open(block(view, "layers.2"))
    assert view.canvas.current == block(view, "layers.2")
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert not view.picture.arrangement.is_open(block(view, "layers"))


def test_backspace_at_the_root_closes_nothing(view, qtbot):
    boxes = len(view.picture.scene.boxes)
    view.canvas.set_current(row(view, "output"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Backspace)
    assert len(view.picture.scene.boxes) == boxes


def test_a_block_closed_from_its_far_end_comes_back_into_sight(view):
    view.canvas.open_everything()
    view.zoom_by(3.0)
    view.reveal("add_4")
    view.close_block("layers")
    place = middle(view, block(view, "layers"))
    assert view.canvas.rect().contains(place)


def test_enter_opens_the_current_block_and_activates_an_op(view, qtbot):
    view.canvas.set_current(block(view, "layers"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Return)
    assert view.picture.arrangement.is_open(block(view, "layers"))
    view.canvas.set_current(row(view, "output"))
    with qtbot.waitSignal(view.op_activated) as signal:
        qtbot.keyClick(view.canvas, Qt.Key.Key_Return)
    assert signal.args == ["output"]


# Moving


def test_the_wheel_zooms_at_the_cursor(view):
    place = QPointF(300, 200)
    under = view.canvas.camera.to_scene(300, 200)
    before = view.canvas.camera.scale
    event = QWheelEvent(
        place, place, QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, NONE, Qt.ScrollPhase.NoScrollPhase, False
    )
    QApplication.sendEvent(view.canvas, event)
    assert view.canvas.camera.scale > before
    assert view.canvas.camera.to_scene(300, 200) == pytest.approx(under)


def test_dragging_pans_and_does_not_select(view):
    before = corner(view, row(view, "x"))
    drag(view, [QPoint(300, 300), QPoint(330, 310), QPoint(360, 340)], NONE)
    assert np.abs(corner(view, row(view, "x")) - before - [60, 40]).max() < 1e-6
    assert view.selected_ops == ()


def test_space_fits_everything_into_the_window(view, qtbot):
    view.zoom_by(4.0)
    assert not view.canvas.shows_everything()
    qtbot.keyClick(view.canvas, Qt.Key.Key_Space)
    assert view.canvas.shows_everything()


def test_f_frames_the_selection(view, qtbot):
    view.canvas.open_everything()
    view.set_selection(["linear_3", "act_3"])
    qtbot.keyClick(view.canvas, Qt.Key.Key_F)
    assert view.canvas.rect().contains(middle(view, row(view, "linear_3")))
    assert view.canvas.camera.scale > 0.5


def test_a_box_dragged_with_ctrl_is_zoomed_into(view):
    left, top = view.canvas.camera.to_scene(400, 300)
    drag(view, [QPoint(400, 300), QPoint(450, 330), QPoint(500, 380)], CTRL)
    shown_left, shown_top = view.canvas.camera.to_scene(0, 0)
    assert shown_left < left
    assert shown_top < top
    assert view.canvas.camera.to_screen(left, top)[0] < 400


def test_fit_leaves_the_legend_free_where_there_is_room_beside_it(view):
    view.resize(700, 1000)
    view.fit()
    left = view.canvas.camera.to_screen(0, 0)[0]
    assert view.canvas.shows_everything()
    assert view.canvas.reserved_left > 0
    right = view.canvas.camera.to_screen(view.picture.scene.total_width, 0)[0]
    assert left >= view.canvas.reserved_left or right == pytest.approx(view.canvas.width() - 14)


def test_a_fitted_graph_stays_fitted_when_the_window_shrinks(view):
    view.fit()
    view.resize(700, 500)
    assert view.canvas.shows_everything()


# Selecting


def test_a_click_selects_an_op_and_tells_it_once(view, qtbot):
    with qtbot.waitSignal(view.selection_changed) as signal:
        click(view, row(view, "stem_linear"))
    assert signal.args == [("stem_linear",)]
    with qtbot.assertNotEmitted(view.selection_changed):
        click(view, row(view, "stem_linear"))


def test_a_click_on_a_block_selects_all_its_ops(view):
    click(view, block(view, "layers"))
    assert len(view.selected_ops) == 15


def test_ctrl_click_adds_and_takes_away(view):
    click(view, row(view, "x"))
    click(view, row(view, "mask"), CTRL)
    assert view.selected_ops == ("x", "mask")
    click(view, row(view, "x"), CTRL)
    assert view.selected_ops == ("mask",)


def test_a_click_beside_everything_and_esc_clear_the_selection(view, qtbot):
    click(view, row(view, "x"))
    QTest.mouseClick(view.canvas, LEFT, NONE, QPoint(5, 5))
    assert view.selected_ops == ()
    click(view, row(view, "x"))
    qtbot.keyClick(view.canvas, Qt.Key.Key_Escape)
    assert view.selected_ops == ()


def test_the_lasso_selects_what_it_encircles(view):
    x, y = middle(view, row(view, "x")).toTuple()
    drag(view, [QPoint(x - 90, y - 40), QPoint(x + 30, y - 40), QPoint(x + 30, y + 30), QPoint(x - 90, y + 30)], SHIFT)
    assert view.selected_ops == ("x",)


def test_a_selection_from_outside_is_silent_and_unknown_ids_are_left_out(view, qtbot):
    with qtbot.assertNotEmitted(view.selection_changed):
        view.set_selection(["act_1", "no_such_op"])
    assert view.selected_ops == ("act_1",)


def test_a_closed_block_shows_that_a_part_of_it_is_selected(view):
    layers = block(view, "layers")
    plain = picture_of(view)
    view.set_selection(["act_1"])
    share = view.picture.share_of(view.picture.selected, np.array([layers]))
    assert share[0] == pytest.approx(1 / 15)
    assert picture_of(view) != plain


def test_points_are_inside_a_polygon_by_the_even_odd_rule():
    outline = np.array([(0, 0), (10, 0), (10, 10), (0, 10)], dtype=float)
    inside = inside_polygon(outline, np.array([5.0, 15.0, -1.0]), np.array([5.0, 5.0, 5.0]))
    assert inside.tolist() == [True, False, False]


# Keyboard


def test_arrow_keys_walk_along_edges_through_open_blocks(view, qtbot):
    view.canvas.open_everything()
    view.canvas.set_current(row(view, "stem_linear"))
    walked = []
    for _ in range(4):
        qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
        walked.append(view.picture.table.op_id[view.canvas.current])
    assert walked[0] == "stem_norm"
    assert walked[1] in {"linear_0", "add_0"}
    assert view.selected_ops == (walked[-1],)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Up)
    assert view.picture.table.op_id[view.canvas.current] != walked[-1]


def test_the_first_arrow_key_goes_to_the_first_box_and_sideways_to_its_neighbour(view, qtbot):
    qtbot.keyClick(view.canvas, Qt.Key.Key_Down)
    assert view.selected_ops == ("x",)
    qtbot.keyClick(view.canvas, Qt.Key.Key_End)
    assert view.selected_ops == ("output",)


def test_the_graph_tells_assistive_technology_what_it_shows(view):
    assert view.canvas.accessibleName() == "Graph of Net"
    assert "17 ops" in view.canvas.accessibleDescription()
    view.canvas.set_current(row(view, "stem_linear"))
    assert "linear" in view.canvas.accessibleDescription()


def test_keys_of_the_window_pass_through(view):
    QTest.keyClick(view.canvas, Qt.Key.Key_Space, CTRL)
    assert view.canvas.camera.scale > 0


# Search


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("linear", 6),
        ("LINEAR", 6),
        ("op:gelu", 5),
        ("name:add_3", 1),
        ("module:layers.2", 3),
        ("linear module:layers.2", 1),
        ("dtype:i64", 2),
        ("dtype:float32 op:add", 5),
        ("shape:8x4", 20),
        ("device:cuda", 0),
        ("/add_[0-2]/", 3),
        ("/^linear_\\d$/", 5),
        ("", 0),
    ],
)
def test_search_finds_by_words_columns_and_patterns(view, query, expected):
    found = view.search(query)
    assert len(found) == expected


def test_a_broken_pattern_is_said_and_finds_nothing(view):
    assert view.search("/(/") == ()
    assert "not a pattern" in view.search_bar.count.text()


def test_next_and_previous_open_what_hides_a_match_and_go_round(view, qtbot):
    view.focus_search()
    qtbot.keyClicks(view.search_bar.field, "gelu")
    assert "5 found" in view.search_bar.count.text()
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return)
    assert view.selected_ops == ("act_0",)
    assert view.picture.row_visible(row(view, "act_0"))
    assert view.canvas.rect().contains(middle(view, row(view, "act_0")))
    qtbot.keyClick(view.search_bar.field, Qt.Key.Key_Return, SHIFT)
    assert view.selected_ops == ("act_4",)
    assert view.search_bar.count.text() == "5 of 5"


def test_searching_fifty_thousand_ops_takes_less_than_the_blink_of_an_eye():
    index = SearchIndex(large_table(50_000))
    spent = []
    for query in ("conv", "op:conv module:stage3", "/relu_.*9/"):
        start = time.process_time()
        assert index.find(query)
        spent.append(time.process_time() - start)
    assert max(spent) < 0.25  # 50 ms on a quiet machine; the limit here only catches a change of order


def test_the_path_between_two_ops_follows_the_edges_in_either_order(view):
    forward = view.canvas.show_path("x", "act_1")
    assert forward[0] == "x"
    assert forward[-1] == "act_1"
    assert view.canvas.show_path("act_1", "x") == forward
    assert set(view.selected_ops) == set(forward)
    assert view.canvas.show_path("x", "mask") == ()


# Colours and the legend


def precision_colouring(table):
    labels = {
        op_id: "int8-static" if "linear" in op else "fp32" for op_id, op in zip(table.op_id, table.op, strict=True)
    }
    return Colouring.from_labels("planned precision", labels, colours={"fp32": "#808080", "int8-static": "#11aa77"})


def test_a_colouring_is_drawn_and_explained_with_letters(view):
    view.canvas.open_everything()
    view.set_colouring(precision_colouring(view.picture.table))
    assert view.picture.colouring.letters == ("F", "I")
    assert "#11aa77" in colours_in(picture_of(view))
    assert [button.text() for button in view.legend.entries.values()] == ["fp32  14", "int8-static  6"]


def test_a_click_in_the_legend_dims_the_ops_of_an_entry(view, qtbot):
    view.canvas.open_everything()
    view.set_colouring(precision_colouring(view.picture.table))
    entry = view.legend.entries[1]
    qtbot.mouseClick(entry, LEFT)
    assert "#11aa77" not in colours_in(picture_of(view).copy(300, 0, 400, 760))
    qtbot.mouseClick(entry, LEFT)
    assert "#11aa77" in colours_in(picture_of(view))


def test_the_legend_folds_to_its_title(view, qtbot):
    tall = view.legend.height()
    qtbot.mouseClick(view.legend.title, LEFT)
    assert view.legend.height() < tall
    assert not view.legend.entries[0].isVisible()
    assert view.legend.geometry().bottom() <= view.canvas.height()


def test_a_found_op_is_not_hidden_under_map_or_legend(view):
    view.canvas.open_everything()
    view.zoom_by(1.2 / view.canvas.camera.scale)
    view.search("add")
    for _ in range(5):
        view.search_next()
        place = middle(view, view.canvas.current)
        assert not view.minimap.geometry().contains(place)
        assert not view.legend.geometry().contains(place)


def test_a_block_counts_the_categories_of_its_ops(view):
    view.set_colouring(precision_colouring(view.picture.table))
    counts = view.picture.mix[block(view, "layers") - view.picture.tree.root]
    assert counts.tolist() == [10, 5]


def test_numbers_become_steps_from_little_to_much():
    colouring = Colouring.from_numbers("latency", {"a": 0.0, "b": 5.0, "c": 10.0, "d": float("nan")}, unit="ms")
    assert colouring.value_of == {"a": 0, "b": 3, "c": 5}
    assert colouring.categories[0].endswith("ms")


def test_a_colouring_needs_a_letter_for_each_category():
    with pytest.raises(ValueError, match="one letter"):
        Colouring(label="x", categories=("a", "b"), colours=("#000000", "#ffffff"), letters=("A",))


def test_text_is_readable_on_every_colour_of_both_themes():
    for theme in (DARK, LIGHT):
        for fill in (*theme.families, *theme.scale, theme.block):
            ink, ground = luminance(text_on(fill)), luminance(fill)
            assert (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05) >= 4.0
    assert len(DARK.families) == len(LIGHT.families) == len(OpFamily)
    assert blend("#ffffff", "#000000", share=0.5) == "#808080"


def test_the_theme_changes_the_background(view):
    view.set_theme(LIGHT)
    assert picture_of(view).pixelColor(2, 2).name() == LIGHT.background


# Levels of detail, sizes and edges of use


@pytest.mark.parametrize("op_height", [1.0, 2.5, 4.0, 7.0, 12.0, 24.0, 60.0])
def test_every_level_of_detail_paints_the_boxes(view, op_height):
    view.canvas.open_everything()
    view.canvas.camera.scale = op_height / 46
    scene = view.picture.scene
    view.canvas.camera.center_on(
        scene.total_width / 2, scene.total_height / 2, width=view.canvas.width(), height=view.canvas.height()
    )
    view.set_filter(frozenset({0}))
    view.set_selection(["act_1"])
    assert len(colours_in(picture_of(view))) > 4


def test_without_a_graph_the_view_says_so(view):
    view.show_graph(None)
    assert EMPTY_TEXT in view.canvas.accessibleDescription()
    assert len(colours_in(picture_of(view))) > 2
    assert view.search("x") == ()
    view.fit()
    view.canvas.frame_selection()
    view.canvas.close_around()
    view.set_selection(["x"])
    assert view.selected_ops == ()
    assert not view.search_bar.isEnabled()


def test_an_empty_table_is_no_graph(view):
    view.show_graph(table_of([]))
    assert view.picture is None


def test_a_graph_of_one_op_is_shown_and_can_be_selected(view):
    view.show_graph(table_of([("only", "aten.relu.default", "act")]))
    click(view, 0)
    assert view.selected_ops == ("only",)
    assert view.breadcrumbs.names == ("Net", "relu")


def test_blocks_that_form_a_cycle_are_painted(view):
    rows = [("a", "aten.add.Tensor", "p"), ("b", "aten.mul.Tensor", "q"), ("c", "aten.neg.default", "p")]
    rows += [("d", "aten.neg.default", "q")]
    view.show_graph(table_of(rows, edges=[(0, 1), (1, 2), (2, 3)]))
    view.canvas.close_everything()
    assert len(view.picture.scene.boxes) == 2
    assert len(colours_in(picture_of(view))) > 4


def test_ten_thousand_ops_are_built_and_painted_open_and_closed(view):
    view.show_graph(large_table())
    assert len(view.picture.scene.boxes) <= 60
    assert len(colours_in(picture_of(view))) > 4
    view.canvas.open_everything()
    assert len(view.picture.scene.boxes) == len(view.picture.table) >= 10_000
    assert len(colours_in(picture_of(view))) > 4


def test_a_new_graph_replaces_selection_search_and_position(view):
    view.search("gelu")
    view.search_next()
    view.show_graph(layered_table(2))
    assert view.selected_ops == ()
    assert view.canvas.current == -1
    view.search_next()


# Around the canvas


def test_breadcrumbs_lead_to_the_blocks_around_the_current_op(view, qtbot):
    view.reveal("act_2")
    assert view.breadcrumbs.names == ("Net", "layers", "2", "mlp", "gelu")
    with qtbot.waitSignal(view.canvas.camera_moved):
        view.breadcrumbs.block_wanted.emit(block(view, "layers"))
    assert view.canvas.current == block(view, "layers")


def test_a_click_on_the_map_goes_there(view):
    view.canvas.open_everything()
    view.zoom_by(6.0)
    assert view.minimap.isVisible()
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(view.minimap.width() // 2, 20))
    upper = view.canvas.camera.to_scene(0, view.canvas.height() / 2)[1]
    QTest.mousePress(view.minimap, LEFT, NONE, QPoint(view.minimap.width() // 2, 110))
    assert view.canvas.camera.to_scene(0, view.canvas.height() / 2)[1] > upper


def test_the_map_is_hidden_where_everything_is_in_sight_or_there_is_no_room(view):
    view.fit()
    assert not view.minimap.isVisible()
    view.zoom_by(5.0)
    view.resize(400, 400)
    assert not view.minimap.isVisible()


def test_the_tooltip_tells_op_module_shape_type_device_cost_and_line(view):
    text = tooltip_of(view.picture, row(view, "linear_1"))
    for part in ("aten.linear.default", "layers.1.mlp", "1x8x4x4", "float32", "cpu", "7 kFLOP", "512 B", "net.py:8"):
        assert part in text
    assert "15" in tooltip_of(view.picture, block(view, "layers"))


def test_names_in_tooltips_are_text_not_markup(view):
    view.show_graph(table_of([("<img src=x>", "aten.relu.default", "")]))
    assert "<img" not in tooltip_of(view.picture, 0)


def test_the_menu_offers_what_fits_the_node(view):
    def titles(node):
        return [action.text() for action in fill_menu(view, node).actions()]

    assert "Open" in titles(block(view, "layers"))
    assert "Open" not in titles(row(view, "x"))
    assert "Copy op id" in titles(row(view, "x"))
    assert titles(-1) == ["Open all blocks", "Close all blocks", "Show everything"]
    view.set_selection(["x", "act_1"])
    assert "Show the path between the two selected ops" in titles(-1)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_picture_can_be_saved(view, tmp_path, ending):
    view.canvas.open_everything()
    path = tmp_path / f"graph{ending}"
    view.export(path)
    start = path.read_bytes()[:400]
    assert {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}[ending] in start


def test_an_unknown_ending_and_a_missing_folder_are_explained(view, tmp_path):
    with pytest.raises(AceError, match=r"\.bmp"):
        view.export(tmp_path / "graph.bmp")
    with pytest.raises(AceError, match="could not be saved"):
        view.export(tmp_path / "missing" / "graph.png")
    view.show_graph(None)
    with pytest.raises(AceError, match="no graph"):
        view.export(tmp_path / "graph.png")


def test_the_bar_of_a_narrow_view_keeps_its_parts_apart(qtbot):
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(330, 300)
    view.show_graph(layered_table(4))
    view.search_bar.field.setText("op:nothing_of_this_name")
    view.show()
    qtbot.waitExposed(view)
    bar = view.search_bar
    parts = [bar.field, bar.count, bar.previous_button, bar.next_button, *view._buttons]
    boxes = [part.rect().translated(part.mapTo(view, QPoint(0, 0))) for part in parts if part.isVisible()]
    assert len(boxes) == len(parts)
    assert all(left.right() < right.left() for left, right in pairwise(boxes))
    assert boxes[-1].right() < view.width()
    assert bar.field.width() >= 64
