"""The plan panel."""

from PySide6.QtCore import Qt

from ace_studio.gui.panels.plan import field_rows
from ace_studio.gui.panels.plan.record_form import is_in_recipe
from ace_studio.records.recipes.recipe import Subset
from tests.gui.gestures import choose
from tests.gui.graph_tables import table_of
from tests.gui.run_results import REPORT


def test_every_part_of_the_plan_opens_and_its_editors_have_names_and_are_keys_of_the_recipe(desk, layered_plan):
    assert layered_plan.forms == {}
    for section in layered_plan.sections.values():
        section.head.setChecked(True)
    desk.settle()
    assert len(layered_plan.forms) == 6
    for form in (layered_plan.precision.scheme, *layered_plan.forms.values()):
        assert form.fields
        for field in form.fields:
            assert is_in_recipe(field)
            assert form.editors[field.name].accessibleName()
    tables = [rows for name, rows in vars(field_rows).items() if name.endswith("_FIELDS")]
    assert len(tables) >= 8 and all(is_in_recipe(field) for rows in tables for field in rows)


def test_undo_takes_a_choice_of_the_form_back_and_the_form_shows_it(desk):
    desk.open_example()
    panel = desk.panel("model")
    choose(desk, panel.calibration, "the examples to trace with")
    desk.do("undo")
    assert panel.calibration.currentData() == "calibration_inputs"


def test_the_ready_recipe_of_the_kind_of_model_is_offered_and_undo_takes_it_back(desk):
    rows = [
        ("x", "input", ""),
        ("conv", "aten.conv1d.default", "conv"),
        ("lstm", "aten.lstm.input", "lstm"),
        ("output", "output", ""),
    ]
    desk.captured(table_of(rows), REPORT)
    panel = desk.panel("plan")
    assert panel.ready.isVisible()
    assert "recurrent network" in panel.ready.text()
    before = desk.document.recipe
    desk.bot.mouseClick(panel.ready, Qt.MouseButton.LeftButton)
    desk.settle()
    taken = desk.document.recipe
    assert taken.calibration.subset is Subset.SPREAD
    assert (taken.model, taken.inputs, taken.targets, taken.evaluate) == (
        before.model, before.inputs, before.targets, before.evaluate,
    )  # fmt: skip
    assert not panel.ready.isVisible()
    desk.do("undo")
    assert desk.document.recipe == before
    assert panel.ready.isVisible()


def test_no_recipe_is_offered_for_a_model_of_no_known_kind(desk, layered_plan):
    assert not layered_plan.ready.isVisible()
