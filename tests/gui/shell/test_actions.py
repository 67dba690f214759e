"""All actions, as rows. Menus, toolbar, shortcuts and the command palette are built from them."""

from __future__ import annotations

from ace_studio.gui.shell.actions import ACTIONS, MENUS
from ace_studio.gui.style.icons import _STROKES
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


def test_actions_have_ids_of_their_own_known_menus_icons_and_no_shortcut_twice():
    ids = [row.id for row in ACTIONS]
    shortcuts = [row.shortcut for row in ACTIONS if row.shortcut]
    assert len(set(ids)) == len(ids)
    assert len(set(shortcuts)) == len(shortcuts)
    assert {row.menu for row in ACTIONS} <= set(MENUS)
    assert {row.icon for row in ACTIONS if row.icon} <= set(_STROKES)
