"""The rules of the plan as a table: pattern, precision, and the ops that each matches."""

from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit

from ace_studio.records.recipes.plan import PlanRule, Precision, WeightGranularity
from tests.gui.planning import INT8, rules, trigger


def cell(table, row, column, role=Qt.ItemDataRole.DisplayRole):
    return table.model().index(row, column).data(role)


def test_rules_are_added_by_enter_with_a_preview_of_what_they_match(desk, layered_plan):
    listed = layered_plan.precision.rules
    listed.match.setText("op:aten.linear.default")
    assert listed.preview.text().startswith("4 ops: stem_linear")
    desk.bot.keyClick(listed.match, Qt.Key.Key_Return)
    desk.settle()
    assert rules(desk) == [("op:aten.linear.default", "fp32")]
    assert cell(listed.table, 0, 2) == "4"
    assert listed.match.text() == ""


def test_words_that_match_nothing_are_said_before_and_after_they_are_added(desk, layered_plan):
    listed = layered_plan.precision.rules
    listed.match.setText("module:layer1")
    assert "No op" in listed.preview.text()
    desk.bot.mouseClick(listed.add_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert cell(listed.table, 0, 2) == "0"
    assert "check the spelling" in cell(listed.table, 0, 2, Qt.ItemDataRole.ToolTipRole)


def test_a_rule_is_written_anew_in_its_place(desk, layered_plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.session.plan.set_rule("type:Block", Precision.BF16)
    desk.settle()
    table = layered_plan.precision.rules.table
    table.setFocus()
    table.setCurrentIndex(table.model().index(0, 0))
    desk.bot.keyClick(table, Qt.Key.Key_F2)
    line = table.findChild(QLineEdit)
    line.setText("module:layers.0")
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()
    assert rules(desk) == [("module:layers.0", "int8-static"), ("type:Block", "bf16")]
    # A later rule wins all three ops of it.
    assert cell(table, 0, 2) == "0 / 3"


def test_words_that_make_no_sense_are_a_problem_and_taken_back(desk, layered_plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.settle()
    table = layered_plan.precision.rules.table
    table.model().setData(table.model().index(0, 0), "stem")
    desk.settle()
    assert rules(desk) == [("module:stem", "int8-static")]
    assert cell(table, 0, 0) == "module:stem"
    assert desk.window.bars.problem.isVisible()


def test_rules_are_moved_and_removed_by_buttons_and_by_keys(desk, layered_plan):
    for name in ("module:stem", "module:layers.0", "module:layers.1"):
        desk.session.plan.set_rule(name, INT8)
    desk.settle()
    listed = layered_plan.precision.rules
    listed.table.setFocus()
    listed.table.setCurrentIndex(listed.table.model().index(0, 0))
    desk.bot.mouseClick(listed.down, Qt.MouseButton.LeftButton)
    desk.settle()
    listed.table.setFocus()
    listed.table.setFocus()
    desk.bot.keyClick(listed.table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    desk.settle()
    assert [match for match, _ in rules(desk)] == ["module:layers.0", "module:layers.1", "module:stem"]
    assert listed.table.currentIndex().row() == 2
    assert not listed.down.isEnabled()
    desk.bot.keyClick(listed.table, Qt.Key.Key_Delete)
    desk.settle()
    desk.bot.mouseClick(listed.remove, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [match for match, _ in rules(desk)] == ["module:layers.0"]


def test_a_rule_has_grids_of_its_own_from_its_context_menu(desk, layered_plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.settle()
    listed = layered_plan.precision.rules
    listed.table.setCurrentIndex(listed.table.model().index(0, 0))
    menu = listed.menu()
    titles = {action.text(): action.menu() for action in menu.actions()}
    trigger(titles["Weights of this rule"], "per-tensor")
    trigger(titles["Group size of this rule"], "64")
    menu.deleteLater()
    desk.settle()
    (rule,) = desk.document.recipe.plan.rules
    assert (rule.weights, rule.activations, rule.group_size) == (WeightGranularity.PER_TENSOR, None, 64)
    assert cell(listed.table, 0, 1, Qt.ItemDataRole.ToolTipRole) == "per-tensor, groups of 64"


def test_cells_of_very_many_rules_are_made_when_they_are_seen(desk, layered_plan, monkeypatch):
    listed = layered_plan.precision.rules
    asked = []
    words = listed._model.data
    monkeypatch.setattr(listed._model, "data", lambda *about: asked.append(about[0].row()) or words(*about))
    plan = desk.document.recipe.plan
    many = tuple(PlanRule(match=f"id:none_{at}", precision=INT8) for at in range(5_000))
    desk.session._state.choose("many", replace(desk.document.recipe, plan=replace(plan, rules=many)))
    desk.settle()
    assert cell(listed.table, 4_999, 0) == "id:none_4999"
    assert len(set(asked)) < 50
