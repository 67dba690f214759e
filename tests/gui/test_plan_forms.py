"""The forms of the plan panel: words that fit, reasons where they belong, and what is typed as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QLabel

from ace_studio.gui.panels.plan.choice_box import ChoiceBox
from ace_studio.gui.panels.plan.targets import BY_NAME
from ace_studio.gui.panels.plan.typed_text import read_counts, read_pairs
from ace_studio.records.recipes.file import parse_recipe, recipe_text
from ace_studio.records.recipes.plan import Precision
from ace_studio.records.recipes.recipe import DecodeChoice


@pytest.fixture
def plan(desk):
    desk.traced()
    desk.session.jobs.request_environment()
    desk.session.plan.set_default_precision(Precision.INT8_STATIC)
    return desk.panel("plan")


def opened(desk, plan):
    """All parts of the panel, unfolded."""
    for section in plan.sections.values():
        section.head.setChecked(True)
    plan.measure.decode_part.head.setChecked(True)
    desk.settle()
    return plan


def note(form, name):
    found = form.notes[name]
    return found.text() if found.isVisibleTo(form) else ""


def type_in(desk, editor, text):
    """Click into an editor, type, and leave it by Return."""
    line = editor.findChild(QComboBox).lineEdit() if not hasattr(editor, "selectAll") else editor
    line.setFocus()
    line.selectAll()
    desk.bot.keyClicks(line, text)
    if not text:
        desk.bot.keyClick(line, Qt.Key.Key_Delete)
    desk.bot.keyClick(line, Qt.Key.Key_Return)
    desk.settle()


def test_at_the_usual_width_no_choice_and_no_line_of_the_plan_is_cut_off(desk, plan):
    opened(desk, plan)
    boxes = plan.findChildren(ChoiceBox)
    assert len(boxes) > 10
    for box in boxes:
        arrow_and_padding = 40
        needed = box.fontMetrics().horizontalAdvance(box.currentText()) + arrow_and_padding
        assert needed <= box.width(), box.accessibleName()
    for text in plan.findChildren(QLabel):
        if text.isVisible() and text.wordWrap():
            assert text.height() >= text.heightForWidth(text.width()), text.text()


def test_what_a_choice_means_stands_below_it_and_in_the_open_list(desk, plan):
    scheme = plan.precision.scheme
    assert note(scheme, "plan.weights") == "a scale per output channel"
    box = scheme.editors["plan.weights"]
    assert box.currentText() == "per-channel"
    box.fit_list()
    whole = box.itemData(1, int(Qt.ItemDataRole.AccessibleTextRole))
    assert whole == "per-tensor: one scale for all: coarser"
    assert box.view().minimumWidth() > box.fontMetrics().horizontalAdvance(whole)
    box.setFocus()
    desk.bot.keyClick(box, Qt.Key.Key_Down)
    desk.settle()
    assert str(desk.document.recipe.plan.weights) == "per-tensor"
    assert note(scheme, "plan.weights") == "one scale for all: coarser"


def test_the_reason_why_a_key_is_grey_stands_below_that_very_key(desk, plan):
    scheme = plan.precision.scheme
    assert not scheme.editors["plan.group_size"].isEnabled()
    assert note(scheme, "plan.group_size") == "Only for weight-only ops, and the plan has none"
    assert note(scheme, "plan.rest") == "as eager"
    top = scheme.editors["plan.group_size"].geometry().bottom()
    assert top < scheme.notes["plan.group_size"].y() < scheme.editors["plan.rest"].y()


def test_a_reason_that_holds_for_several_keys_in_a_row_stands_once(desk, plan):
    form = opened(desk, plan).forms["Fine-tuning"]
    said = [name for name in form.notes if note(form, name) == "Choose a method first"]
    assert said == ["finetune.data"]


def test_a_target_that_auto_leaves_out_is_not_ticked_and_says_so(desk, plan):
    environment = desk.document.environment
    targets = tuple(replace(one, available=True, reason="", precisions={}) for one in environment.targets)
    targets = tuple(replace(one, is_in_auto=one.name != "aoti") for one in targets)
    desk.session._state.change(environment=replace(environment, targets=targets))
    desk.settle()
    form = plan.targets
    assert form.boxes["inductor"].isChecked()
    assert not form.boxes["aoti"].isChecked()
    assert form._reasons["aoti"].text() == BY_NAME
    desk.bot.mouseClick(form.auto, Qt.MouseButton.LeftButton, pos=QPoint(8, form.auto.height() // 2))
    desk.settle()
    assert "aoti" not in desk.document.recipe.targets.names
    box = form.boxes["aoti"]
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert "aoti" in desk.document.recipe.targets.names
    assert form._reasons["aoti"].text() == ""


def test_profiling_is_switched_off_by_a_click_and_on_again_by_undo(desk, plan):
    box = plan.measure.more.editors["measure.profile"]
    desk.bot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    desk.settle()
    assert desk.document.recipe.measure.profile is False
    desk.do("undo")
    assert desk.document.recipe.measure.profile is True
    assert box.isChecked()


def test_batch_sizes_are_typed_and_words_that_are_none_are_told_below_the_line(desk, plan):
    form = plan.measure.more
    line = form.editors["measure.batches"]
    type_in(desk, line, "1, 8, 8, 32")
    assert desk.document.recipe.measure.batches == (1, 8, 32)
    type_in(desk, line, "1, many")
    assert desk.document.recipe.measure.batches == (1, 8, 32)
    assert "'many' is no whole number" in note(form, "measure.batches")
    assert form.notes["measure.batches"].property("role") == "bad"
    # What was typed stays to be mended, wherever the focus goes.
    plan.precision.default.setFocus()
    desk.session.plan.set_default_precision(Precision.FP32)
    desk.settle()
    assert line.text() == "1, many"
    desk.do("undo")
    desk.do("undo")
    assert desk.document.recipe.measure.batches == ()
    assert line.text() == ""
    assert "is no" not in note(form, "measure.batches")


def test_batch_sizes_of_a_graph_whose_batch_is_fixed_carry_a_warning(desk, plan):
    capture = desk.document.capture
    first = capture.inputs[0]
    form = plan.measure.more
    desk.session.choices.set_choice("measure", batches=(1, 8))
    desk.settle()
    assert note(form, "measure.batches").startswith("Each is timed")
    dims = tuple(replace(dim, verdict="static") for dim in first.dims)
    desk.session._state.change(capture=replace(capture, inputs=(replace(first, dims=dims), *capture.inputs[1:])))
    desk.settle()
    assert f"{first.name} · 0 is not free" in note(form, "measure.batches")


def test_a_step_model_is_told_in_the_window_and_the_recipe_opens_again(desk, plan):
    form = opened(desk, plan).measure.decode
    assert note(form, "measure.decode.feed") == "Name the token input first"
    assert not form.editors["measure.decode.feed"].isEnabled()
    type_in(desk, form.editors["measure.decode.token"], "pixels")
    assert "would forget" in note(form, "measure.decode.feed")
    type_in(desk, form.editors["measure.decode.feed"], "cache")
    assert "'cache' is no pair" in note(form, "measure.decode.feed")
    type_in(desk, form.editors["measure.decode.feed"], "cache = 1")
    assert note(form, "measure.decode.feed") == "The model has no input 'cache'. It takes pixels."
    form.editors["measure.decode.tokens"].setValue(64)
    wanted = DecodeChoice(token="pixels", feed={"cache": "1"}, tokens=64)
    assert desk.document.recipe.measure.decode == wanted
    assert parse_recipe(recipe_text(desk.document.recipe), name="r.toml").measure.decode == wanted


def test_without_an_input_for_the_token_nothing_is_said_of_decoding(desk, plan):
    form = opened(desk, plan).measure.decode
    desk.session.choices.set_choice("measure.decode", token="pixels", feed={"cache": "1"})
    desk.settle()
    type_in(desk, form.editors["measure.decode.token"], "")
    assert desk.document.recipe.measure.decode == DecodeChoice()
    parse_recipe(recipe_text(desk.document.recipe), name="r.toml")
    desk.do("undo")
    assert desk.document.recipe.measure.decode.feed == {"cache": "1"}


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "8; 16", "²"])
def test_what_is_no_batch_size_is_refused(text):
    with pytest.raises(ValueError, match="no whole number"):
        read_counts(text)


@pytest.mark.parametrize(
    ("text", "wrong"), [("a", "no pair"), ("a =", "no pair"), ("= 1", "no pair"), ("a=1,a=2", "twice")]
)
def test_what_is_no_pair_is_refused(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read_pairs(text)
