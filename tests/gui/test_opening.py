"""Every way to open something in the window leads to the same question to the engine."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QInputDialog

from ace_studio.records.messages import InspectRequest


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


def test_a_model_of_a_package_is_opened_by_its_name_and_again_from_the_recent_ones(desk, monkeypatch):
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: (" timm:resnet18 ", True))
    desk.do("open-named")
    assert [path.rpartition("/")[2] for path in asked(desk)] == ["timm:resnet18"]
    desk.window.commands.open_path(desk.document.recent_files[0])
    desk.settle()
    assert len(asked(desk)) == 2
    assert desk.document.problems == ()


@pytest.mark.parametrize("answer", [("", True), ("timm:resnet18", False)])
def test_nothing_is_opened_without_a_name(desk, monkeypatch, answer):
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: answer)
    desk.do("open-named")
    assert asked(desk) == []


def test_a_name_of_no_package_is_a_problem_in_words(desk, monkeypatch):
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: ("keras:resnet", True))
    desk.do("open-named")
    assert "There is no keras:resnet" in desk.document.problems[0].what
