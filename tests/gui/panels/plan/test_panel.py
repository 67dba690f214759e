"""The plan panel."""

from __future__ import annotations

from ace_studio.gui.panels.plan import field_rows
from ace_studio.gui.panels.plan.record_form import is_in_recipe
from tests.gui.gestures import choose


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
