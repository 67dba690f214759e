"""A form made of `FieldRow`s."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QLabel

from ace_studio.gui.panels.plan.editors import ChoiceBox
from ace_studio.records.recipes.plan import WeightGranularity
from ace_studio.records.recipes.recipe import ImproveMethod, PruneMethod
from tests.gui.forms import note, opened
from tests.gui.planning import INT8


def test_at_the_usual_width_no_choice_and_no_line_of_the_plan_is_cut_off(desk, int8_plan):
    opened(desk, int8_plan)
    boxes = int8_plan.findChildren(ChoiceBox)
    assert len(boxes) > 10
    for box in boxes:
        arrow_and_padding = 40
        needed = box.fontMetrics().horizontalAdvance(box.currentText()) + arrow_and_padding
        assert needed <= box.width(), box.accessibleName()
    for text in int8_plan.findChildren(QLabel):
        if text.isVisible() and text.wordWrap():
            assert text.height() >= text.heightForWidth(text.width()), text.text()


def test_the_reason_why_a_key_is_grey_stands_below_that_very_key(desk, int8_plan):
    scheme = int8_plan.precision.scheme
    assert not scheme.editors["plan.group_size"].isEnabled()
    assert note(scheme, "plan.group_size") == "Only for weight-only ops, and the plan has none"
    assert note(scheme, "plan.rest") == "as eager"
    top = scheme.editors["plan.group_size"].geometry().bottom()
    assert top < scheme.notes["plan.group_size"].y() < scheme.editors["plan.rest"].y()


def test_a_reason_that_holds_for_several_keys_in_a_row_stands_once(desk, int8_plan):
    form = opened(desk, int8_plan).forms["Fine-tuning"]
    said = [name for name in form.notes if note(form, name) == "Choose a method first"]
    assert said == ["finetune.data"]


def test_profiling_is_switched_off_by_a_click_and_on_again_by_undo(desk, int8_plan):
    box = int8_plan.measure.more.editors["measure.profile"]
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert desk.document.recipe.measure.profile is False
    desk.do("undo")
    assert desk.document.recipe.measure.profile is True
    assert box.isChecked()


def open_form(desk, layered_plan, name):
    layered_plan.sections[name].head.setChecked(True)
    desk.settle()
    return layered_plan.forms[name]


def test_a_method_of_better_rounding_is_ticked_and_undo_takes_it_back(desk, layered_plan):
    form = open_form(desk, layered_plan, "Better rounding")
    box = next(one for one in form.findChildren(QCheckBox) if one.text() == "smoothquant")
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert desk.document.recipe.improve.methods == (ImproveMethod.SMOOTHQUANT,)
    layered_plan.sections["Better rounding"].head.setChecked(False)
    assert layered_plan.sections["Better rounding"]._summary.text() == "smoothquant"
    desk.do("undo")
    assert desk.document.recipe.improve.methods == ()


def test_what_does_not_apply_is_grey_with_its_reason_until_it_does(desk, layered_plan):
    form = open_form(desk, layered_plan, "Pruning")
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


def test_the_scheme_of_weights_is_a_choice_of_the_plan(desk, layered_plan):
    desk.session.plan.set_default_precision(INT8)
    desk.settle()
    combo = layered_plan.precision.scheme.editors["plan.weights"]
    combo.setCurrentIndex(combo.findData("per-tensor"))
    combo.activated.emit(combo.currentIndex())
    assert desk.document.recipe.plan.weights is WeightGranularity.PER_TENSOR
    assert "weight-only" in layered_plan.precision.scheme.editors["plan.group_size"].toolTip()


def test_the_time_limit_of_learning_is_grey_until_rounding_is_learned(desk, layered_plan):
    form = open_form(desk, layered_plan, "Better rounding")
    limit = form.editors["improve.max_seconds"]
    assert not limit.isEnabled()
    assert limit.toolTip() == "Only for learned rounding"
    box = next(one for one in form.findChildren(QCheckBox) if one.text() == "learned-rounding")
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert limit.isEnabled()
