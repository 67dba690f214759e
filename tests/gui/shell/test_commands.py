"""The commands of menus, toolbar and palette: open, save, show dialogs and panels."""

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

from ace_studio.gui.dialogs.catch import CatchDialog
from ace_studio.gui.dialogs.help import HelpDialog
from ace_studio.records.messages import InspectRequest
from ace_studio.records.places import example_recipe
from ace_studio.records.recipes.plan import Precision
from tests.gui.graph_tables import partial_capture


def asked(desk) -> list[str]:
    return [request.path for request in desk.engine.requests if isinstance(request, InspectRequest)]


def test_a_folder_is_opened(desk, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    desk.do("open-folder")
    assert asked(desk) == [str(tmp_path)]
    assert desk.document.recent_files == (str(tmp_path),)


def test_a_folder_can_be_dropped(desk, tmp_path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    desk.window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, mime, buttons, keys))
    assert asked(desk) == [str(tmp_path)]


def test_a_model_of_a_package_is_among_the_recent_ones_and_opens_again(desk):
    desk.window.commands.open_path("timm:resnet18")
    desk.settle()
    assert [path.rpartition("/")[2] for path in asked(desk)] == ["timm:resnet18"]
    desk.window.commands.open_path(desk.document.recent_files[0])
    desk.settle()
    assert len(asked(desk)) == 2
    assert desk.document.problems == ()


def test_a_name_of_no_package_is_a_problem_in_words(desk):
    desk.window.commands.open_path("keras:resnet")
    desk.settle()
    assert "There is no file keras:resnet" in desk.document.problems[0].what


def test_the_recipe_is_saved_where_it_is_asked_for_and_opens_again(desk, tmp_path, monkeypatch):
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.BF16)
    path = tmp_path / "mine.toml"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    desk.do("save-as")
    assert path.exists()
    assert desk.window.windowTitle().startswith("mine.toml")
    desk.window.commands.open_path(str(path))
    desk.settle()
    assert desk.document.recipe.plan.default is Precision.BF16


def test_a_name_for_a_recipe_is_one_that_desktops_know(desk, tmp_path, monkeypatch):
    proposed = []

    def ask(_parent, _title, name, _kinds):
        proposed.append(Path(name).name)
        return str(tmp_path / "mine"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", ask)
    (tmp_path / "net.py").write_text("")
    desk.window.commands.open_path(str(tmp_path / "net.py"))
    desk.settle()
    desk.do("save-as")
    assert (tmp_path / "mine.ace.toml").exists()
    desk.do("save-as")
    assert proposed == ["net.ace.toml", "mine.ace.toml"]


def test_the_graph_is_saved_as_a_picture(desk, tmp_path, monkeypatch):
    assert not desk.window.actions_.by_id["save-graph"].isEnabled()
    desk.captured(*partial_capture(3))
    path = tmp_path / "graph.svg"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    desk.do("save-graph")
    assert "a branch depends" in path.read_text(encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "graph.doc"), ""))
    desk.do("save-graph")
    assert "no ending that the graph can be saved as" in desk.document.problems[-1].what


def test_ctrl_f_searches_the_graph_from_another_panel(desk):
    desk.captured(*partial_capture(3))
    desk.do("show-ops")
    QTest.keyClick(desk.window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    field = desk.panel("graph").view.search_bar.field
    assert desk.window.focusWidget() is field
    QTest.keyClicks(field, "linear")
    assert desk.panel("graph").view.picture.matched.any()


def test_the_step_compare_shows_the_graph_beside_the_one_that_runs(desk):
    desk.ran()
    steps, graph = desk.window.step_line.buttons, desk.panel("graph")
    assert not graph.compare_button.isChecked()
    for _ in range(2):
        QTest.mouseClick(steps["compare"], Qt.MouseButton.LeftButton)
        desk.settle()
        assert graph.compare_button.isChecked()
        assert desk.window.workbench.panel("results").isVisible()


def test_opening_a_file_shows_what_would_run_before_trust(desk, tmp_path):
    desk.panel("plan")
    (tmp_path / "own.py").write_text("", "utf-8")
    desk.window.commands.open_path(str(tmp_path / "own.py"))
    desk.settle()
    assert desk.window.workbench.panel("model").isVisible()
    assert not desk.window.workbench.panel("plan").isVisible()


def test_what_is_saved_of_the_example_is_proposed_at_home(desk, monkeypatch):
    proposed = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: (proposed.append(args[2]), ("", ""))[1])
    desk.window.commands.open_example()
    desk.settle()
    before = example_recipe().read_bytes()
    desk.window.commands.save()
    desk.window.commands.save_graph()
    assert [Path(one).parent for one in proposed] == [Path.home()] * 2
    assert example_recipe().read_bytes() == before


@pytest.mark.parametrize("action", ["settings", "catch", "devices", "engine-host", "open-named", "help", "about"])
def test_a_dialog_is_open_once_and_f1_in_it_opens_its_page(desk, action):
    desk.open_example()
    for _ in range(2):
        desk.do(action)
    (dialog,) = desk.window.findChildren(QDialog)
    QTest.keyClick(dialog, Qt.Key.Key_F1)
    (page,) = desk.window.findChildren(HelpDialog)
    assert page.isVisible()


def test_a_dialog_that_a_panel_opens_is_that_of_the_menu(desk):
    desk.open_example()
    desk.panel("shapes").catch_button.click()
    desk.do("catch")
    (dialog,) = desk.window.findChildren(QDialog)
    QTest.keyClick(dialog, Qt.Key.Key_F1)
    assert desk.window.findChildren(HelpDialog)
    dialog.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not desk.window.findChildren(CatchDialog)
