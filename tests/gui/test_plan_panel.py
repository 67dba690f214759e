"""The plan panel: ticks on modules, the table of rules, greyed precisions, folded sections."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit

from ace_studio.gui.ops.precision_offers import precision_offers
from ace_studio.gui.panels.plan.field_rows import FIELD_ROWS
from ace_studio.gui.panels.plan.record_form import is_in_recipe
from ace_studio.records.recipes.plan import Precision, WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod, PruneMethod
from ace_studio.records.results import CaptureReport
from ace_studio.session.document import Part
from tests.gui.graph_tables import large_table, layered_table

INT8 = Precision.INT8_STATIC
REPORT = CaptureReport(rung="export", ops=1, seconds=1.0)


@pytest.fixture
def plan(desk):
    desk.captured(layered_table(3), REPORT)
    desk.session.plan.set_default_precision(Precision.FP32)
    desk.window.resize(1400, 1000)
    return desk.panel("plan")


def rules(desk):
    return [(rule.match, str(rule.precision)) for rule in desk.document.recipe.plan.rules]


def item_of(plan, path):
    return plan.precision.modules._items[path]


def click_box(desk, plan, path):
    """Click the tick of a module, as a mouse does."""
    tree, item = plan.precision.modules.tree, item_of(plan, path)
    parent = item.parent()
    while parent is not None:
        parent.setExpanded(True)
        parent = parent.parent()
    tree.scrollToItem(item)
    desk.settle()
    box = tree.visualItemRect(item)
    desk.bot.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 10, box.center().y()))
    desk.settle()


def test_a_click_on_the_tick_of_a_module_compresses_it_and_undo_takes_that_back(desk, plan):
    click_box(desk, plan, "layers.1")
    assert rules(desk) == [("module:layers.1", "int8-static")]
    assert item_of(plan, "layers.1.mlp").checkState(0) is Qt.CheckState.Checked
    assert item_of(plan, "layers").checkState(0) is Qt.CheckState.PartiallyChecked
    assert item_of(plan, "layers").text(1) == "mixed"
    desk.do("undo")
    assert rules(desk) == []
    assert item_of(plan, "layers").checkState(0) is Qt.CheckState.Unchecked


def test_a_dash_becomes_a_tick_and_a_tick_becomes_nothing(desk, plan):
    click_box(desk, plan, "layers.1")
    click_box(desk, plan, "layers")
    assert rules(desk) == [("module:layers", "int8-static")]
    click_box(desk, plan, "layers")
    assert rules(desk) == []


def test_a_tick_is_set_by_the_space_key_too(desk, plan):
    tree = plan.precision.modules.tree
    tree.setFocus()
    tree.setCurrentItem(item_of(plan, "stem"))
    desk.bot.keyClick(tree, Qt.Key.Key_Space)
    desk.settle()
    assert rules(desk) == [("module:stem", "int8-static")]


def test_f2_in_the_precision_of_a_module_opens_a_list_to_choose_from(desk, plan):
    tree = plan.precision.modules.tree
    tree.setFocus()
    tree.setCurrentItem(item_of(plan, "stem"), 1)
    desk.bot.keyClick(tree, Qt.Key.Key_F2)
    combo = tree.findChild(QComboBox)
    assert combo.accessibleName()
    combo.setCurrentIndex(combo.findText("bf16"))
    combo.activated.emit(combo.currentIndex())
    desk.settle()
    assert rules(desk) == [("module:stem", "bf16")]
    assert item_of(plan, "stem").text(1) == "bf16"


def test_ticks_are_shown_but_not_offered_while_the_goal_chooses(desk, plan):
    desk.session.plan.set_plan_from_goal(True)
    desk.settle()
    assert not item_of(plan, "stem").flags() & Qt.ItemFlag.ItemIsUserCheckable
    assert "goal" in plan.precision.modules._note.text()


def test_rules_are_added_by_enter_with_a_preview_of_what_they_match(desk, plan):
    listed = plan.precision.rules
    listed.match.setText("op:aten.linear.default")
    assert listed.preview.text().startswith("4 ops: stem_linear")
    desk.bot.keyClick(listed.match, Qt.Key.Key_Return)
    desk.settle()
    assert rules(desk) == [("op:aten.linear.default", "fp32")]
    assert listed.table.item(0, 2).text() == "4"
    assert listed.match.text() == ""


def test_words_that_match_nothing_are_said_before_and_after_they_are_added(desk, plan):
    listed = plan.precision.rules
    listed.match.setText("module:layer1")
    assert "No op" in listed.preview.text()
    desk.bot.mouseClick(listed.add_button, Qt.MouseButton.LeftButton)
    desk.settle()
    assert listed.table.item(0, 2).text() == "0"
    assert "misspelt" in listed.table.item(0, 2).toolTip()


def test_a_rule_is_written_anew_in_its_place(desk, plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.session.plan.set_rule("type:Block", Precision.BF16)
    desk.settle()
    table = plan.precision.rules.table
    table.setFocus()
    table.setCurrentCell(0, 0)
    desk.bot.keyClick(table, Qt.Key.Key_F2)
    line = table.findChild(QLineEdit)
    line.setText("module:layers.0")
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()
    assert rules(desk) == [("module:layers.0", "int8-static"), ("type:Block", "bf16")]
    # A later rule wins all three ops of it.
    assert table.item(0, 2).text() == "0 / 3"


def test_words_that_make_no_sense_are_a_problem_and_taken_back(desk, plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.settle()
    table = plan.precision.rules.table
    table.item(0, 0).setText("stem")
    desk.settle()
    assert rules(desk) == [("module:stem", "int8-static")]
    assert table.item(0, 0).text() == "module:stem"
    assert desk.window.bars.problem.isVisible()


def test_rules_are_moved_and_removed_by_buttons_and_by_keys(desk, plan):
    for name in ("module:stem", "module:layers.0", "module:layers.1"):
        desk.session.plan.set_rule(name, INT8)
    desk.settle()
    listed = plan.precision.rules
    listed.table.setFocus()
    listed.table.setCurrentCell(0, 0)
    desk.bot.mouseClick(listed.down, Qt.MouseButton.LeftButton)
    desk.settle()
    listed.table.setFocus()
    desk.bot.keyClick(listed.table, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    desk.settle()
    assert [match for match, _ in rules(desk)] == ["module:layers.0", "module:layers.1", "module:stem"]
    assert listed.table.currentRow() == 2
    assert not listed.down.isEnabled()
    desk.bot.keyClick(listed.table, Qt.Key.Key_Delete)
    desk.settle()
    desk.bot.mouseClick(listed.remove, Qt.MouseButton.LeftButton)
    desk.settle()
    assert [match for match, _ in rules(desk)] == ["module:layers.0"]


def test_a_rule_has_grids_of_its_own_from_its_context_menu(desk, plan):
    desk.session.plan.set_rule("module:stem", INT8)
    desk.settle()
    listed = plan.precision.rules
    listed.table.setCurrentCell(0, 0)
    menu = listed.menu()
    titles = {action.text(): action.menu() for action in menu.actions()}
    trigger(titles["Weights of this rule"], "per-tensor")
    trigger(titles["Group size of this rule"], "64")
    menu.deleteLater()
    desk.settle()
    (rule,) = desk.document.recipe.plan.rules
    assert (rule.weights, rule.activations, rule.group_size) == (WeightGranularity.PER_TENSOR, None, 64)
    assert listed.table.item(0, 1).toolTip() == "per-tensor, groups of 64"


def test_a_precision_that_no_chosen_target_can_do_is_grey_and_says_why(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    plan = desk.panel("plan")
    environment = desk.document.environment
    targets = tuple(
        replace(one, available=one.name == "onnxruntime", precisions={"bf16": "its kernels have no bf16"})
        for one in environment.targets
    )
    desk.session._state.change(environment=replace(environment, targets=targets))
    desk.settle()
    item = plan.precision.default.model().item(plan.precision.default.findData("bf16"))
    assert not item.isEnabled()
    assert "its kernels have no bf16" in item.toolTip()
    desk.session.plan.set_default_precision(Precision.BF16)
    desk.settle()
    assert "None of the chosen targets" in plan.precision._refused.text()


def test_a_precision_that_one_of_two_targets_can_do_is_offered_with_the_other_one_named(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    desk.settle()
    environment = desk.document.environment
    first, second = [one.name for one in environment.targets][:2]
    targets = tuple(
        replace(one, available=one.name in (first, second), precisions={"fp8": "no"} if one.name == first else {})
        for one in environment.targets
    )
    desk.session._state.change(environment=replace(environment, targets=targets))
    offer = precision_offers(desk.document)["fp8"]
    assert offer.is_possible
    assert offer.words == f"{first}: no"


def test_the_context_menu_of_the_op_table_sets_the_precision_of_every_op_of_a_kind(desk, plan):
    ops = desk.panel("ops")
    desk.session.view.select(["linear_0"])
    desk.settle()
    menu = ops.menu()
    titles = {action.text(): action.menu() for action in menu.actions() if action.menu()}
    assert list(titles) == [
        "Precision of linear_0",
        "Precision of every linear",
        "Precision of every op in Block",
        "Precision of module layers.0.mlp",
    ]
    trigger(titles["Precision of every linear"], "bf16")
    trigger(titles["Precision of module layers.0.mlp"], "fp32")
    menu.deleteLater()
    desk.settle()
    assert rules(desk) == [("op:aten.linear.default", "bf16"), ("module:layers.0.mlp", "fp32")]


def test_the_context_menu_of_the_graph_is_about_the_block_under_the_pointer(desk, plan):
    view = desk.window.workbench.panel("graph").view
    picture = view.picture
    block = picture.tree.block_of_path("layers.1")
    view.open_block("layers")
    x, y = view.canvas.camera.to_screen(float(picture.scene.x[block]), float(picture.scene.y[block]))
    menu = view.menu_at(QPoint(round(x) + 4, round(y) + 4))
    titles = {action.text(): action.menu() for action in menu.actions() if action.menu()}
    trigger(titles["Precision of 3 ops"], "bf16")
    menu.deleteLater()
    assert rules(desk) == [("id:linear_1", "bf16"), ("id:act_1", "bf16"), ("id:add_1", "bf16")]


def test_a_folded_section_says_what_is_chosen_in_it_and_stays_folded(desk, plan):
    section = plan.sections["Goal"]
    desk.bot.mouseClick(section.head, Qt.MouseButton.LeftButton)
    desk.settle()
    assert not plan.goal.isVisible()
    assert "best latency" in section._summary.text()
    assert desk.session.settings.recall("section-Goal") is False
    desk.bot.keyClick(section.head, Qt.Key.Key_Space)
    assert plan.goal.isVisible()


def test_every_part_of_the_plan_opens_and_its_editors_have_names_and_are_keys_of_the_recipe(desk, plan):
    assert plan.forms == {}
    for section in plan.sections.values():
        section.head.setChecked(True)
    desk.settle()
    assert len(plan.forms) == 6
    for form in (plan.precision.scheme, *plan.forms.values()):
        assert form.fields
        for field in form.fields:
            assert is_in_recipe(field)
            assert form.editors[field.name].accessibleName()
    assert all(is_in_recipe(field) for field in FIELD_ROWS)


def open_form(desk, plan, name):
    plan.sections[name].head.setChecked(True)
    desk.settle()
    return plan.forms[name]


def test_a_method_of_better_rounding_is_ticked_and_undo_takes_it_back(desk, plan):
    form = open_form(desk, plan, "Better rounding")
    box = next(one for one in form.findChildren(QCheckBox) if one.text() == "smoothquant")
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert desk.document.recipe.improve.methods == (ImproveMethod.SMOOTHQUANT,)
    plan.sections["Better rounding"].head.setChecked(False)
    assert plan.sections["Better rounding"]._summary.text() == "smoothquant"
    desk.do("undo")
    assert desk.document.recipe.improve.methods == ()


def test_what_does_not_apply_is_grey_with_its_reason_until_it_does(desk, plan):
    form = open_form(desk, plan, "Pruning")
    amount, method = form.editors["prune.amount"], form.editors["prune.method"]
    assert not amount.isEnabled()
    assert amount.toolTip() == "Choose a method first"
    method.setCurrentIndex(method.findData("structured"))
    method.activated.emit(method.currentIndex())
    desk.settle()
    assert desk.document.recipe.prune.method is PruneMethod.STRUCTURED
    amount.setValue(0.3)
    desk.settle()
    assert desk.document.recipe.prune.amount == 0.3
    assert "Only for n:m" in form.editors["prune.pattern"].toolTip()


def test_the_scheme_of_weights_is_a_choice_of_the_plan(desk, plan):
    desk.session.plan.set_default_precision(INT8)
    desk.settle()
    combo = plan.precision.scheme.editors["plan.weights"]
    combo.setCurrentIndex(combo.findData("per-tensor"))
    combo.activated.emit(combo.currentIndex())
    assert desk.document.recipe.plan.weights is WeightGranularity.PER_TENSOR
    assert "weight-only" in plan.precision.scheme.editors["plan.group_size"].toolTip()


def test_a_turn_of_the_plan_panel_takes_less_than_a_frame_drop_at_two_thousand_ops(desk):
    desk.captured(large_table(2000), REPORT)
    plan = desk.panel("plan")
    desk.session.plan.set_default_precision(INT8)
    for at in range(40):
        desk.session.plan.set_rule(f"id:conv2d_{at}*", Precision.FP32)
    desk.settle()
    took = []
    for at in range(5):
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.FP32)
        start = time.process_time()
        plan.update_from(desk.document)
        took.append(time.process_time() - start)
    assert Part.RECIPE in plan.shows
    assert min(took) < 0.05


def trigger(menu, text):
    next(action for action in menu.actions() if action.text() == text).trigger()
