"""The card of one tried fix: its result, its change, and buttons to copy, save or add it."""

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton

from ace_studio.gui.panels.breaks.fix_card import FixCard
from ace_studio.records.fixes import FixKind
from ace_studio.records.messages import FixTried, InspectRequest, JobCancelled, JobFinished, TraceRequest
from tests.gui.breaking import CONTROL, FILE, click_row, fix, press

PATCH = f"--- {FILE}\n+++ {FILE}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def test_a_control_that_works_goes_into_the_recipe_with_one_click(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    broken.session.apply(FixTried(job=broken.engine.requests[-1].job, fix=fix(control=CONTROL)))
    broken.settle()
    press(broken, panel, "Add to recipe")
    assert broken.document.recipe.capture.controls == (CONTROL,)
    assert any(each.text() == "In the recipe" and not each.isEnabled() for each in panel.findChildren(QPushButton))
    broken.do("undo")
    assert broken.document.recipe.capture.controls == ()


def test_a_patch_is_shown_copied_and_saved_and_the_source_stays(broken, tmp_path, monkeypatch):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    patched = fix(kind=FixKind.WHERE, title="use where", patch=PATCH)
    broken.session.apply(FixTried(job=broken.engine.requests[-1].job, fix=patched))
    broken.settle()
    (card,) = panel.findChildren(FixCard)
    assert card.diff.isVisible()
    assert "+x = 2" in card.diff.toPlainText()
    press(broken, card, "Copy patch")
    assert QApplication.clipboard().text() == PATCH
    path = tmp_path / "fix.patch"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    press(broken, card, "Save patch…")
    assert path.read_text(encoding="utf-8") == PATCH
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "no" / "where"), ""))
    press(broken, card, "Save patch…")
    assert broken.document.problems[-1].what == "The patch could not be saved"


@pytest.mark.parametrize("is_over", [True, False])
def test_a_fix_of_the_models_own_file_is_opened_as_a_copy_and_undo_goes_back(broken, tmp_path, is_over):
    source = tmp_path / "m.py"
    source.write_text("x = 1\n", encoding="utf-8")
    recipe = broken.document.recipe
    moved = replace(recipe, model=replace(recipe.model, source="m.py"))
    broken.session._state.change(recipe=moved, folder=str(tmp_path))
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    patched = fix(kind=FixKind.WHERE, title="use where", patch=PATCH, file=str(source))
    job = broken.engine.requests[-1].job
    broken.session.apply(FixTried(job=job, fix=patched))
    if is_over:
        broken.session.apply(JobFinished(job=job))
    broken.settle()
    broken.session.jobs.open_patched_copy(patched)
    broken.settle()
    assert broken.engine.cancelled == ([] if is_over else [job])
    if not is_over:
        broken.session.apply(JobCancelled(job=job))
        broken.settle()
    assert (tmp_path / "m_fixed.py").read_text(encoding="utf-8") == "x = 2\n"
    assert source.read_text(encoding="utf-8") == "x = 1\n"
    assert broken.document.recipe.model.source == "m_fixed.py"
    assert isinstance(broken.engine.requests[-1], InspectRequest | TraceRequest)
    broken.do("undo")
    assert broken.document.recipe.model.source == "m.py"
