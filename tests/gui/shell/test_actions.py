"""All actions, as rows. Menus, toolbar, shortcuts and the command palette are built from them."""

import json

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QMenu

from ace_studio.gui.shell.actions import ACTIONS, MENUS
from ace_studio.gui.style.icons import _STROKES
from ace_studio.records.messages import RunRequest
from ace_studio.records.places import resource_folder
from ace_studio.records.recipes.plan import Precision


def test_a_precision_for_the_selected_ops_becomes_a_rule_and_undo_takes_it_back(desk):
    desk.traced()
    desk.session.view.select([desk.document.graph.op_id[1]])
    desk.settle()
    desk.do("precision-fp32")
    assert desk.document.recipe.plan.rules[-1].precision is Precision.FP32
    assert desk.window.isWindowModified()
    desk.do("undo")
    assert desk.document.recipe.plan.rules == ()
    assert not desk.window.isWindowModified()
    desk.do("redo")
    assert len(desk.document.recipe.plan.rules) == 1


def test_undo_says_what_it_takes_back(desk):
    desk.open_example()
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "bf16" in desk.window.actions_.by_id["undo"].text()


def test_no_letter_stands_twice_in_a_menu(desk):
    desk.open_example()
    for menu in desk.window.menuBar().findChildren(QMenu):
        letters = [words[words.index("&") + 1].lower() for one in menu.actions() if "&" in (words := one.text())]
        assert len(set(letters)) == len(letters), menu.title()


def test_no_letter_of_the_menu_bar_is_the_shortcut_of_something_else(desk):
    bar = [one.text() for one in desk.window.menuBar().actions()]
    pack = json.loads((resource_folder() / "languages" / "Deutsch.json").read_text())["texts"]
    for texts in (bar, [pack[each] for each in bar]):
        letters = [f"Alt+{words[words.index('&') + 1].upper()}" for words in texts]
        taken = [one.shortcut().toString() for one in desk.window.actions_.by_id.values()]
        assert len(set(letters)) == len(letters) and not set(letters) & set(taken), texts


def test_every_action_can_be_reached_by_the_keyboard(desk):
    desk.ran()
    in_menus = {one for menu in desk.window.menuBar().findChildren(QMenu) for one in menu.actions()}
    assert set(desk.window.actions_.by_id.values()) <= in_menus
    assert all("&" in top.text() for top in desk.window.menuBar().actions())


def test_shift_f10_opens_the_menu_of_what_has_the_keyboard(desk):
    desk.traced()
    table = desk.panel("ops").table
    desk.window.activateWindow()
    table.setFocus()
    desk.bot.waitUntil(table.hasFocus)
    asked = []
    watcher = ContextMenus(asked)
    table.installEventFilter(watcher)
    desk.bot.keyClick(table, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    desk.bot.waitUntil(lambda: asked == [QContextMenuEvent.Reason.Keyboard])


class ContextMenus(QObject):
    """Keeps the reasons of context menus, and opens none."""

    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def eventFilter(self, watched, event):
        if isinstance(event, QContextMenuEvent):
            self.asked.append(event.reason())
            return True
        return False


def test_actions_have_ids_of_their_own_known_menus_icons_and_no_shortcut_twice():
    ids = [row.id for row in ACTIONS]
    shortcuts = [row.shortcut for row in ACTIONS if row.shortcut]
    assert len(set(ids)) == len(ids)
    assert len(set(shortcuts)) == len(shortcuts)
    assert {row.menu for row in ACTIONS} <= set(MENUS)
    assert {row.icon for row in ACTIONS if row.icon} <= set(_STROKES)


def test_f6_while_the_file_is_looked_at_runs_once_it_is_trusted_and_esc_takes_it_back(desk):
    desk.engine.by_itself = False
    desk.open_example()
    actions, status = desk.window.actions_.by_id, desk.window.status_line._what
    look = desk.engine.requests[-1]
    for key, left in ((Qt.Key.Key_F6, "Looking at the file, then Run"), (Qt.Key.Key_Escape, "Looking at the file")):
        desk.bot.keyClick(desk.window, key)
        desk.settle()
        assert status.text() == left
        assert actions["cancel"].isEnabled() is left.endswith("Run")
    desk.bot.keyClick(desk.window, Qt.Key.Key_F6)
    desk.engine.answer(look)
    desk.settle()
    assert desk.engine.requests[-1] is look, "its code is not trusted yet"
    assert status.text() == "Trust comes first, then Run"
    desk.bot.mouseClick(desk.window.step_line.buttons["trust"], Qt.MouseButton.LeftButton)
    assert isinstance(desk.engine.requests[-1], RunRequest)
    assert not desk.engine.cancelled


def test_a_key_that_can_do_nothing_now_says_why_and_starts_nothing(desk):
    said = desk.window.statusBar().currentMessage
    desk.bot.keyClick(desk.window, Qt.Key.Key_F5)
    assert said() == "Trace: Open a model first"
    desk.running()
    asked = len(desk.engine.requests)
    desk.bot.keyClick(desk.window, Qt.Key.Key_F5)
    assert said().startswith("Trace: The engine is busy with a run. ")
    assert len(desk.engine.requests) == asked
    desk.window.statusBar().clearMessage()
    desk.bot.keyClick(desk.window, Qt.Key.Key_F6)
    assert not said() and len(desk.document.queue) == 2, "a run waits for its turn"
