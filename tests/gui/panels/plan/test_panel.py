"""The plan panel."""

from __future__ import annotations

import os
import time

import pytest

from ace_studio.gui.panels.plan.field_rows import FIELD_ROWS
from ace_studio.gui.panels.plan.record_form import is_in_recipe
from ace_studio.records.recipes.plan import Precision
from ace_studio.session.document import Part
from tests.gui.gestures import choose
from tests.gui.graph_tables import large_table
from tests.gui.planning import INT8
from tests.gui.run_results import REPORT
from tests.gui.two_targets import two_targets


@pytest.mark.skipif(
    "ACE_STUDIO_TIMES" not in os.environ, reason="a limit in milliseconds: on request, on a quiet machine"
)
def test_selecting_an_op_and_turning_the_plan_at_two_thousand_ops_stay_cheap(desk):
    two_target_plan = two_targets(desk, large_table(2000))
    tree = two_target_plan.precision.modules
    tree.tree.expandAll()
    desk.settle()
    assert len(tree._op_items) == desk.document.graph.op_count
    turns, selections = [], []
    ids = list(tree._op_items)
    for at in range(4):
        desk.session.view.select((ids[at * 7],))
        start = time.process_time()
        two_target_plan.update_from(desk.document)
        selections.append(time.process_time() - start)
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.INT8_STATIC)
        start = time.process_time()
        two_target_plan.update_from(desk.document)
        turns.append(time.process_time() - start)
    assert min(selections) < 0.005
    assert min(turns) < 0.05


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
    assert all(is_in_recipe(field) for field in FIELD_ROWS)


def test_a_turn_of_the_plan_panel_takes_less_than_a_frame_drop_at_two_thousand_ops(desk):
    desk.captured(large_table(2000), REPORT)
    layered_plan = desk.panel("plan")
    desk.session.plan.set_default_precision(INT8)
    for at in range(40):
        desk.session.plan.set_rule(f"id:conv2d_{at}*", Precision.FP32)
    desk.settle()
    took = []
    for at in range(5):
        desk.session.plan.set_precision_of_module(f"stage0.block.{at}", Precision.FP32)
        start = time.process_time()
        layered_plan.update_from(desk.document)
        took.append(time.process_time() - start)
    assert Part.RECIPE in layered_plan.shows
    assert min(took) < 0.05


def test_undo_takes_a_choice_of_the_form_back_and_the_form_shows_it(desk):
    desk.open_example()
    panel = desk.panel("model")
    choose(desk, panel.calibration, "the examples to trace with")
    desk.do("undo")
    assert panel.calibration.currentData() == "calibration_inputs"
