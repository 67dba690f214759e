"""The three areas of an open model: choices at the side, the graph in the middle, findings below."""

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer

from ace_studio.gui.graph_view.canvas import GraphCanvas
from ace_studio.gui.shell.main_window import MainWindow
from ace_studio.gui.shell.panel_table import PANELS, Area
from ace_studio.records.errors import ErrorCode
from ace_studio.records.places import example_recipe
from ace_studio.records.results import CaptureReport
from tests.gui.graph_tables import layered_table


def test_one_selection_is_shared_by_graph_table_tree_and_source(desk):
    desk.traced()
    panels = {name: desk.panel(name) for name in ("ops", "modules", "source", "graph")}
    op_id = next(one for one in desk.document.graph.op_id if one.startswith("linear"))
    desk.session.view.select([op_id])
    for name in ("modules", "source", "ops"):
        desk.panel(name)
    rows = panels["ops"].table.selectionModel().selectedRows()
    assert [panels["ops"].model.columns[1].values[panels["ops"].model.source_row(one.row())] for one in rows] == [op_id]
    assert panels["graph"].view.selected_ops == (op_id,)
    assert panels["modules"].tree.selectedItems()[0].data(0, 0x0100).startswith("classifier")
    assert panels["source"].text.extraSelections()


def test_panels_take_turns_when_a_graph_arrives_so_that_the_window_answers_between_them(desk):
    desk.captured(layered_table(50), CaptureReport(rung="export", ops=150, seconds=1.0))
    ops = desk.panel("ops")
    modules = desk.panel("modules")
    turns = []
    QTimer.singleShot(0, lambda: turns.append("somebody else"))
    for name, panel in (("ops", ops), ("modules", modules), ("graph", desk.window.workbench.panel("graph"))):
        show = panel.update_from
        panel.update_from = lambda document, name=name, show=show: (turns.append(name), show(document))
    desk.session.view.select([desk.document.graph.op_id[5]])
    desk.window._refresh()
    assert not turns
    desk.bot.waitUntil(lambda: set(turns) == {"graph", "ops", "modules", "somebody else"})
    assert turns.index("somebody else") < len(turns) - 1
    assert next(name for name in turns if name != "somebody else") == "graph"
    assert ops.table.selectionModel().selectedRows()


def test_areas_can_be_hidden_and_the_layout_is_kept(desk):
    desk.open_example()
    desk.do("toggle-side")
    desk.do("show-results")
    state = desk.window.workbench.save_layout()
    desk.do("toggle-side")
    desk.do("show-ops")
    desk.window.workbench.restore_layout(state)
    assert desk.window.workbench.save_layout() == state


@pytest.mark.parametrize("theme", ["light", "dark", "high-contrast"])
def test_every_panel_can_be_shown_in_every_theme(desk, theme):
    desk.ran()
    desk.session.set_setting("theme", theme)
    for row in PANELS:
        assert desk.panel(row.id).accessibleName() == row.title
    assert desk.window.theme.colours.name == theme
    assert desk.document.problems == ()


def test_a_mistake_in_a_panel_is_a_problem_and_the_window_lives(desk, monkeypatch):
    desk.traced()
    panel = desk.panel("ops")

    def stumble(_document):
        raise RuntimeError("stumbled")

    monkeypatch.setattr(panel, "update_from", stumble)
    desk.session.view.select([desk.document.graph.op_id[1]])
    desk.settle()
    assert desk.document.problems[-1].code is ErrorCode.INTERNAL
    assert desk.panel("source").isVisible()


def test_trust_lets_the_panels_in_sight_start_a_job_at_once(desk):
    desk.open_example()
    panel = desk.panel("run")
    assert not panel.trace_button.isEnabled()
    desk.bot.mouseClick(desk.window.step_line.buttons["trust"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert panel.trace_button.isEnabled()
    assert panel.run_button.isEnabled()


def test_another_model_takes_search_texts_and_breadcrumbs_of_the_last_one_away(desk):
    desk.captured(layered_table(50), CaptureReport(rung="export", ops=150, seconds=1.0))
    view = desk.window.workbench.panel("graph").view
    ops = desk.panel("ops")
    desk.bot.keyClicks(view.search_bar.field, "linear")
    desk.bot.keyClicks(ops.filter, "linear")
    desk.settle()
    desk.window.commands.open_path(str(example_recipe().with_name("model.py")))
    desk.settle()
    assert (view.search_bar.field.text(), ops.filter.text()) == ("linear", "linear"), "the same model"
    desk.window.commands.open_path("timm:resnet18")
    desk.settle()
    assert (view.search_bar.field.text(), ops.filter.text()) == ("", "")
    assert view.breadcrumbs.names == ()


@pytest.mark.parametrize("panel_id", ["graph", "charts", "plan"])
def test_f11_gives_a_panel_the_whole_window_and_esc_gives_it_back(desk, panel_id):
    desk.ran()
    desk.window.activateWindow()
    desk.bot.waitUntil(desk.window.isActiveWindow)
    panel = desk.panel(panel_id)
    desk.do(f"show-{panel_id}")
    before, places = panel.width() * panel.height(), desk.window.workbench.save_layout()
    desk.bot.keyClick(desk.window, Qt.Key.Key_F11)
    desk.settle()
    assert panel.isVisible()
    assert panel.width() * panel.height() > max(1.2 * before, 0.75 * desk.window.width() * desk.window.height())
    desk.bot.keyClick(desk.window, Qt.Key.Key_Escape)
    desk.settle()
    assert desk.window.toolbar.isVisible()
    assert desk.window.workbench.save_layout() == places
    assert desk.window.actions_.by_id["cancel"].shortcut().toString() == "Esc"


@pytest.mark.parametrize("filling", ["graph", "charts", "plan"])
def test_the_graph_shows_the_same_place_after_a_panel_filled_the_window(desk, filling):
    desk.ran()
    canvas = desk.window.findChild(GraphCanvas)
    canvas.zoom(2.0)
    before = canvas.camera.scale, *canvas.camera.to_scene(canvas.width() / 2, canvas.height() / 2)
    desk.do(f"show-{filling}")
    desk.do("fill")
    desk.do("fill")
    after = canvas.camera.scale, *canvas.camera.to_scene(canvas.width() / 2, canvas.height() / 2)
    assert after == pytest.approx(before, rel=0.01)


@pytest.mark.parametrize("filling", ["graph", "plan", "charts"])
def test_a_panel_that_is_asked_for_while_another_fills_the_window_ends_that(desk, filling):
    desk.ran()
    desk.window.activateWindow()
    desk.bot.waitUntil(desk.window.isActiveWindow)
    desk.do(f"show-{filling}") if filling != "graph" else desk.window.workbench.show_panel("graph", focus=True)
    for wanted in ("results", "model", "graph"):
        desk.do("fill")
        assert not desk.window.toolbar.isVisible()
        is_beside = desk.window.workbench._slots[filling].parent() is desk.window.workbench._slots[wanted].parent()
        desk.panel(wanted)
        assert desk.window.workbench.panel(wanted).isVisible()
        assert desk.window.toolbar.isVisible() is not is_beside
        if is_beside:
            desk.do("fill")
        desk.window.workbench.show_panel(filling, focus=True)
        desk.settle()


def tabs_that_show(desk, area):
    tabs = desk.window.workbench._tabs[area]
    return [tabs.tabText(at) for at in range(tabs.count()) if tabs.isTabVisible(at)]


def test_a_group_brings_its_panels_to_the_front_and_leaves_areas_where_it_has_none(desk):
    desk.traced()
    groups = desk.window.workbench._groups.buttons
    assert (tabs_that_show(desk, "side"), tabs_that_show(desk, "bottom")) == (["Model"], ["Inputs"])
    desk.bot.mouseClick(groups["graph"], Qt.MouseButton.LeftButton)
    assert tabs_that_show(desk, "side") == ["Modules", "Details"]
    assert tabs_that_show(desk, "bottom") == ["Ops", "Source", "Capture", "Breaks"]
    desk.bot.mouseClick(groups["results"], Qt.MouseButton.LeftButton)
    desk.bot.mouseClick(groups["plan"], Qt.MouseButton.LeftButton)
    assert tabs_that_show(desk, "side") == ["Plan"]
    assert tabs_that_show(desk, "bottom")[:3] == ["Run", "Results", "Charts"], "a plan and its results, side by side"
    assert all(len(tabs_that_show(desk, area)) <= 5 for area in Area)


def test_a_group_comes_back_with_the_panel_that_was_in_front(desk):
    desk.traced()
    desk.do("show-source")
    desk.do("show-history")
    assert desk.window.workbench._groups.buttons["history"].isChecked()
    desk.bot.mouseClick(desk.window.workbench._groups.buttons["graph"], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.window.workbench.panel("source").isVisible()


def test_the_groups_say_what_they_hold_and_fit_a_low_window(desk):
    desk.ran()
    bar = desk.window.workbench._groups
    assert f"Results ({len(desk.document.runs)})" in bar.buttons["results"].accessibleName()
    desk.window.resize(500, 330)
    desk.settle()
    assert max(each.geometry().bottom() for each in bar.buttons.values()) <= bar.height()


def own_window(desk, panel_id):
    """Give a panel a window of its own, as the menu of its tab does."""
    desk.panel(panel_id)
    tabs = desk.window.workbench._tabs[desk.window.workbench._homes[panel_id]]
    menu = tabs.places.menu()
    menu.aboutToShow.emit()
    menu.actions()[0].trigger()
    desk.settle()
    return desk.window.workbench.panel(panel_id).window()


def test_a_panel_goes_to_a_window_of_its_own_and_comes_back_when_that_is_closed(desk):
    desk.ran()
    window = own_window(desk, "charts")
    assert window.windowTitle() == "Charts – recipe.toml"
    assert window.windowType() is Qt.WindowType.Tool, "in front of the main window, of no other program's"
    assert "Charts" not in tabs_that_show(desk, "bottom")
    desk.do("show-charts")
    assert desk.window.workbench.panel("charts").window() is window
    window.close()
    desk.settle()
    assert desk.window.workbench.panel("charts").window() is desk.window
    assert desk.window.workbench.panel("charts").isVisible()
    assert tabs_that_show(desk, "bottom")[2] == "Charts"


def test_a_layout_of_a_window_of_another_size_leaves_every_area_its_room(desk, qtbot):
    desk.ran()
    desk.window.workbench._rows.setSizes([300, 400])
    for width, height in ((800, 490), (1280, 800)):
        desk.window.close()
        desk.window = MainWindow(desk.session, desk.window.theme)
        qtbot.addWidget(desk.window)
        desk.window.resize(width, height)
        desk.window.show()
        bench = desk.window.workbench
        assert bench._rows.sizes()[0] > 0.4 * bench.height()
        assert bench._rows.sizes()[1] > 0.4 * bench.height()
        assert bench._columns.sizes()[1] > 0.55 * bench.width()
        before = bench._rows.sizes()[1]
        desk.window.close()
        again = MainWindow(desk.session, desk.window.theme)
        qtbot.addWidget(again)
        again.show()
        assert again.workbench._rows.sizes()[1] == before, "nothing drifts"
        again.close()


def test_f11_in_a_window_of_its_own_takes_the_screen_and_esc_gives_it_back(desk):
    desk.ran()
    window = own_window(desk, "charts")
    window.activateWindow()
    desk.bot.waitUntil(window.isActiveWindow)
    desk.window.workbench.show_panel("charts", focus=True)
    desk.settle()
    desk.bot.keyClick(window, Qt.Key.Key_F11)
    assert window.isFullScreen()
    assert desk.window.toolbar.isVisible()
    desk.bot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.isFullScreen()
    desk.bot.keyClick(window, Qt.Key.Key_F11, Qt.KeyboardModifier.ShiftModifier)
    desk.settle()
    assert desk.window.workbench.panel("charts").window() is desk.window


def test_places_and_windows_of_panels_are_remembered_also_when_the_screen_is_gone(desk, qtbot):
    desk.ran()
    bench = desk.window.workbench
    bench.move_panel("details", Area.RIGHT)
    own_window(desk, "charts").move(20_000, 20_000)
    desk.settle()
    desk.window.close()
    assert not bench.panel("charts").window().isVisible()
    again = MainWindow(desk.session, desk.window.theme)
    qtbot.addWidget(again)
    again.show()
    charts = again.workbench.panel("charts").window()
    assert charts is not again
    assert charts.isVisible()
    assert any(
        screen.availableGeometry().intersects(charts.geometry()) for screen in desk.window.screen().virtualSiblings()
    )
    assert again.workbench.current(Area.RIGHT) == "details"
    again.workbench.reset_places()
    desk.bot.wait(20)
    assert again.workbench.panel("charts").window() is again
    assert not again.workbench.is_shown(Area.RIGHT)
    again.close()


def test_a_tab_is_dragged_to_another_area_or_out_of_all(desk):
    desk.ran()
    bench = desk.window.workbench
    desk.panel("results")

    def drag(panel_id, target):
        tabs = bench._tabs[bench._homes[panel_id]]
        bar, at = tabs.tabBar(), tabs.indexOf(bench._slots[panel_id])
        desk.bot.mousePress(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(at).center())
        there = bar.mapFromGlobal(target.mapToGlobal(target.rect().center()))
        for place in (there, there + QPoint(2, 2)):
            desk.bot.mouseMove(bar, place)
        assert bench._landing.isVisible()
        desk.bot.mouseRelease(bar, Qt.MouseButton.LeftButton, pos=there)
        desk.settle()

    drag("advice", bench._tabs["side"])
    assert bench.current(Area.SIDE) == "advice"
    drag("charts", bench._slots["graph"])
    assert bench.panel("charts").window() is not desk.window
    assert not bench._landing.isVisible()
    assert tabs_that_show(desk, "bottom")[:2] == ["Run", "Results (4)"]
    desk.do("reset-places")
    assert tabs_that_show(desk, "bottom")[:3] == ["Run", "Results (4)", "Charts"]
