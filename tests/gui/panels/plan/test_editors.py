"""The editors that forms are made of, one function per kind of key."""

from __future__ import annotations

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
