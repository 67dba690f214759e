"""A recipe that somebody else changed on the disk is never overwritten without a question."""

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from ace_studio.gui.dialogs.changed_on_disk import ChangedOnDiskDialog
from ace_studio.records.recipes.file import read_recipe
from ace_studio.records.recipes.plan import Precision

MINE = '# Ann wrote this\nformat = 1\n[model]\nsource = "net.py"  # the net\n\n[measure]\nrounds = 50  # many\n'
THEIRS = MINE.replace("rounds = 50", "rounds = 70").replace("# Ann", "# Bob and Ann")


@pytest.fixture
def changed(desk, tmp_path):
    """A window with an unsaved choice, and a recipe that changed on the disk meanwhile."""
    path = tmp_path / "mine.toml"
    (tmp_path / "net.py").write_text("")
    path.write_text(MINE)
    desk.window.commands.open_path(str(path))
    desk.settle()
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    path.write_text(THEIRS)
    return path


def asked(desk) -> list[ChangedOnDiskDialog]:
    desk.settle()
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, ChangedOnDiskDialog) and one.isVisible()]


def click(desk, button) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    desk.settle()


def test_saving_shows_both_versions_and_keeping_mine_keeps_their_comments(desk, changed):
    desk.do("save")
    assert changed.read_text() == THEIRS
    (dialog,) = asked(desk)
    assert dialog.windowTitle() == "mine.toml changed on disk"
    shown = dialog.both.toPlainText()
    assert "-rounds = 70  # many" in shown and "+rounds = 50  # many" in shown and '+default = "bf16"' in shown
    click(desk, dialog.keep_button)
    saved = read_recipe(changed)
    assert (saved.measure.rounds, saved.plan.default) == (50, Precision.BF16)
    assert changed.read_text().startswith("# Bob and Ann") and not desk.window.isWindowModified()
    assert changed.with_name("mine.toml.bak").read_text() == THEIRS


def test_taking_the_file_s_choices_can_be_undone(desk, changed):
    desk.do("save")
    (dialog,) = asked(desk)
    click(desk, dialog.take_button)
    assert desk.document.recipe.measure.rounds == 70 and not desk.window.isWindowModified()
    desk.do("undo")
    assert desk.document.recipe.plan.default is Precision.BF16 and desk.window.isWindowModified()
    assert changed.read_text() == THEIRS


def test_saving_to_another_file_leaves_theirs_as_it_is(desk, changed, monkeypatch):
    other = changed.with_name("other.toml")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(other), ""))
    desk.do("save")
    (dialog,) = asked(desk)
    click(desk, dialog.save_as_button)
    assert changed.read_text() == THEIRS
    assert other.read_text() == MINE + '\n[plan]\ndefault = "bf16"\n'


def come_back(desk) -> None:
    desk.window.activateWindow()
    desk.settle()
    QApplication.sendEvent(desk.window, QEvent(QEvent.Type.ActivationChange))


def test_coming_back_to_the_window_asks_once_for_each_change(desk, changed):
    come_back(desk)
    (dialog,) = asked(desk)
    dialog.reject()
    come_back(desk)
    assert asked(desk) == []
    changed.write_text(THEIRS.replace("70", "80"))
    come_back(desk)
    (dialog,) = asked(desk)
    click(desk, dialog.keep_button)
    assert desk.window.isWindowModified() and "rounds = 80" in changed.read_text()
    desk.do("save")
    assert asked(desk) == [] and read_recipe(changed).measure.rounds == 50


def test_a_file_that_is_no_recipe_any_more_cannot_be_taken(desk, changed):
    changed.write_text("this is no recipe")
    desk.do("save")
    (dialog,) = asked(desk)
    assert not dialog.take_button.isEnabled()
    click(desk, dialog.keep_button)
    assert changed.read_text() == MINE + '\n[plan]\ndefault = "bf16"\n'


def test_new_comments_alone_are_kept_without_a_question(desk, changed):
    changed.write_text(MINE.replace("# many", "# very many"))
    desk.do("save")
    assert asked(desk) == []
    assert "rounds = 50  # very many" in changed.read_text() and '"bf16"' in changed.read_text()
