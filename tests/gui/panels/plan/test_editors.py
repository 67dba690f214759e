"""The editors that forms are made of, one function per kind of key."""

import pytest
from PySide6.QtCore import Qt

from ace_studio.gui.panels.plan.editors import read_counts, read_pairs
from ace_studio.records.recipes.plan import Precision
from tests.gui.forms import note, type_in


def test_batch_sizes_are_typed_and_words_that_are_none_are_told_below_the_line(desk, int8_plan):
    form = int8_plan.measure.more
    line = form.editors["measure.batches"]
    type_in(desk, line, "1, 8, 8, 32")
    assert desk.document.recipe.measure.batches == (1, 8, 32)
    type_in(desk, line, "1, many")
    assert desk.document.recipe.measure.batches == (1, 8, 32)
    assert "'many' is not a whole number" in note(form, "measure.batches")
    assert form.notes["measure.batches"].property("role") == "bad"
    # What was typed stays to be mended, wherever the focus goes.
    int8_plan.precision.default.setFocus()
    desk.session.plan.set_default_precision(Precision.FP32)
    desk.settle()
    assert line.text() == "1, many"
    desk.do("undo")
    desk.do("undo")
    assert desk.document.recipe.measure.batches == ()
    assert line.text() == ""
    assert "is not" not in note(form, "measure.batches")


def test_what_a_choice_means_stands_below_it_and_in_the_open_list(desk, int8_plan):
    scheme = int8_plan.precision.scheme
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


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "8; 16", "²"])
def test_what_is_no_batch_size_is_refused(text):
    with pytest.raises(ValueError, match="not a whole number"):
        read_counts(text)


@pytest.mark.parametrize(
    ("text", "wrong"), [("a", "not a pair"), ("a =", "not a pair"), ("= 1", "not a pair"), ("a=1,a=2", "twice")]
)
def test_what_is_no_pair_is_refused(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read_pairs(text)
