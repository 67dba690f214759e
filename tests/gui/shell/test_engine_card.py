"""The engine is missing: the window offers to install a pack, and the engine starts by itself."""

import sys
import threading
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QLabel

from ace_studio.gui.dialogs.install_pack import InstallPackDialog
from ace_studio.gui.shell.app import Studio
from ace_studio.jobs import launch
from ace_studio.jobs.client import WorkerClient
from ace_studio.jobs.engine_packs import find_packs, packs_folder
from ace_studio.records.errors import AceError, ErrorCode, Problem
from ace_studio.records.messages import WorkerLost
from ace_studio.records.safe_file import file_sha256
from ace_studio.session.document import EngineState
from ace_studio.session.kept.folders import UserFolders
from tests.jobs.packs import beyond_the_longest_path, make_pack, pack_named

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the pack of the tests is a shell script")


@pytest.fixture
def studio(qapp, qtbot, tmp_path, monkeypatch, fake_engine):
    """The window of an installed program, with a pack among the downloads and no Python on the path."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("platformdirs.user_downloads_dir", lambda: str(tmp_path / "downloads"))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "program" / "ace-studio"))
    monkeypatch.setattr(launch.shutil, "which", lambda _: None)
    make_pack(tmp_path / "downloads")
    folders = UserFolders.inside(tmp_path / "user")
    made = Studio(qapp, folders, client=WorkerClient(str(tmp_path / "no-python")))
    made.window.resize(1000, 900)
    made.window.show()
    qtbot.waitUntil(lambda: made.session.document.activity.state is EngineState.LOST, timeout=20_000)
    qtbot.waitUntil(made.window.engine_card.isVisible)
    yield made
    made.window.close()
    made.close()
    qtbot.wait(20)  # what was to happen next happens before the window is deleted


def is_running(studio) -> bool:
    return studio.session.document.activity.state not in {EngineState.LOST, EngineState.STARTING}


def question(studio, qtbot) -> InstallPackDialog:
    """The dialog that asks, once it is there."""

    def shown():
        return [one for one in studio.window.findChildren(InstallPackDialog) if one.isVisible()]

    qtbot.waitUntil(lambda: bool(shown()))
    assert len(shown()) == 1 and not find_packs()
    return shown()[0]


def test_the_pack_among_the_downloads_is_installed_after_a_question_and_the_engine_starts(studio, qtbot):
    card = studio.window.engine_card
    assert card.offer_button.text() == f"Install {pack_named()}"
    assert not studio.window.bars.problem.isVisible()
    qtbot.mouseClick(card.offer_button, Qt.MouseButton.LeftButton)
    dialog = question(studio, qtbot)
    dialog.tick.setChecked(True)
    qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: is_running(studio), timeout=10_000)
    qtbot.waitUntil(lambda: not card.isVisible())
    assert studio.session.settings.interpreter() == find_packs()[0].python


def test_a_chosen_file_that_is_damaged_is_told_and_the_card_stays(studio, qtbot, tmp_path, monkeypatch):
    damaged = make_pack(tmp_path, pack_named(kind="small"), said={"files": 7})
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(damaged), ""))
    qtbot.mouseClick(studio.window.engine_card.file_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(studio.window.bars.problem.isVisible)
    assert "is damaged" in studio.session.document.problems[-1].what
    assert studio.window.engine_card.file_button.isVisible()
    monkeypatch.setattr(studio.window.commands.installer, "examine", lambda file: None)
    qtbot.mouseClick(studio.window.engine_card.file_button, Qt.MouseButton.LeftButton)
    assert not any("is damaged" in one.what for one in studio.session.document.problems)


def test_the_dialog_for_a_pack_starts_at_home_without_a_folder_of_downloads(studio, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("platformdirs.user_downloads_dir", lambda: str(tmp_path / "Downloads"))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *args: (asked.append(args[2]), ("", ""))[1])
    studio.window.commands.install_engine()
    (tmp_path / "Downloads").mkdir()
    studio.window.commands.install_engine()
    assert asked == [str(Path.home()), str(tmp_path / "Downloads")]


def drop(studio, file) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file))])
    everywhere = Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    studio.window.dropEvent(QDropEvent(QPointF(5, 5), *everywhere))


def open_by_dialog(studio, file) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(file)], ""))
        studio.window.commands.open_dialog()


def open_as_argument(studio, file) -> None:
    studio.open_first([str(file)])


WAYS = [drop, open_by_dialog, open_as_argument]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_named_like_a_pack_is_asked_about_and_return_and_escape_mean_no(studio, qtbot, tmp_path, way):
    file = tmp_path / "downloads" / f"{pack_named()}.tar.gz"
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
        way(studio, file)
        dialog = question(studio, qtbot)
        words = [one.text() for one in dialog.findChildren(QLabel)]
        assert file_sha256(file) in words and str(file) in words and any("Nobody signed it" in one for one in words)
        assert not dialog.install_button.isEnabled()
        qtbot.keyClick(dialog, key)
        qtbot.waitUntil(lambda: not studio.window.findChildren(InstallPackDialog))
    assert not find_packs() and studio.window.engine_card.file_button.isVisible()


@pytest.mark.parametrize("way", WAYS)
def test_an_attack_named_like_a_pack_is_refused_without_a_question(studio, qtbot, tmp_path, way):
    (tmp_path / ".bashrc").write_text("alive")
    file = tmp_path / "downloads" / f"{pack_named()}.tar.gz"
    make_pack(file.parent, more=beyond_the_longest_path(pack_named(), up=5, to=".bashrc"))
    way(studio, file)
    qtbot.waitUntil(studio.window.bars.problem.isVisible)
    assert "too long" in studio.session.document.problems[-1].why
    assert (tmp_path / ".bashrc").read_text() == "alive" and not packs_folder().exists()
    assert not studio.window.findChildren(InstallPackDialog)


def test_a_pack_that_is_exchanged_while_the_question_is_open_is_not_installed(studio, qtbot, tmp_path):
    file = tmp_path / "downloads" / f"{pack_named()}.tar.gz"
    drop(studio, file)
    dialog = question(studio, qtbot)
    make_pack(file.parent, said={"packages": {"torch": "another"}})
    dialog.tick.setChecked(True)
    qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(studio.window.bars.problem.isVisible)
    assert "another file than the one" in studio.session.document.problems[-1].why and not find_packs()


def test_cancel_stops_an_installation(studio, qtbot, tmp_path, monkeypatch):
    card, heard = studio.window.engine_card, []
    monkeypatch.setattr("ace_studio.jobs.pack_install.install", _waits(heard))
    drop(studio, tmp_path / "downloads" / f"{pack_named()}.tar.gz")
    dialog = question(studio, qtbot)
    dialog.tick.setChecked(True)
    qtbot.mouseClick(dialog.install_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(card.cancel_button.isVisible)
    assert not card.file_button.isVisible()
    qtbot.mouseClick(card.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(card.file_button.isVisible)
    assert heard == ["cancelled"] and not studio.session.document.activity.is_working


def test_a_pack_is_made_from_the_network_with_what_pip_says_shown(studio, qtbot, tmp_path, monkeypatch):
    card, may_end, given = studio.window.engine_card, threading.Event(), []

    def make_online(python, say, is_cancelled):
        given.append(python)
        say("Collecting torch")
        may_end.wait(10)
        raise AceError.of(ErrorCode.NOT_INSTALLED, "The engine could not be made", why="no index answers")

    monkeypatch.setattr("ace_studio.jobs.online_engine.make_online", make_online)
    qtbot.mouseClick(card.online_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Collecting torch" in [one.text() for one in card.findChildren(QLabel) if one.isVisible()])
    assert given == [""] and not card.online_button.isVisible()
    may_end.set()
    qtbot.waitUntil(studio.window.bars.problem.isVisible)
    assert studio.session.document.problems[-1].why == "no index answers"
    assert card.online_button.isVisible()


def _waits(heard):
    def install(offer, consent, report, is_cancelled):
        while not is_cancelled():
            time.sleep(0.01)
        heard.append("cancelled")
        raise AceError.of(ErrorCode.CANCELLED, "The installation was cancelled")

    return install


def test_with_an_open_model_the_bar_offers_the_installation(desk, monkeypatch):
    monkeypatch.setattr(desk.engine, "restart", lambda: None)
    desk.open_example()
    asked = []
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (asked.append(1), ("", ""))[1])
    problem = Problem(code=ErrorCode.NOT_INSTALLED, what="The Python of the engine has no torch")
    for _ in range(2):  # the second is the one that never started
        desk.session.apply(WorkerLost(problem=problem))
    desk.settle()
    assert desk.window.bars.install_button.isVisible()
    desk.window.bars.install_button.click()
    assert asked == [1]
