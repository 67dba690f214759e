"""The graph panel: what is missing, what the colours mean, and the precision of the selected ops."""

from __future__ import annotations

import pytest

from ace_studio.gui.ops.colourings import COLOURINGS
from ace_studio.gui.ops.facts import op_facts, selected_run
from ace_studio.records.recipes.plan import Precision


def test_without_a_graph_the_panel_says_what_to_do_next(desk):
    desk.open_example()
    panel = desk.window.workbench.panel("graph")
    assert "program" in panel._empty._title.text()
    desk.session.trust.trust_file()
    desk.settle()
    assert panel._empty._title.text() == "Not traced yet"


@pytest.mark.parametrize("choice", [row.id for row in COLOURINGS])
def test_every_colouring_names_its_categories_with_a_colour_and_a_letter(desk, choice):
    desk.ran()
    panel = desk.window.workbench.panel("graph")
    panel.show_colouring(choice)
    desk.settle()
    colouring = panel.view.picture.colouring
    assert colouring.categories
    assert len(colouring.colours) == len(colouring.letters) == len(colouring.categories)


def test_actual_precisions_are_those_of_the_selected_run(desk):
    desk.ran()
    panel = desk.window.workbench.panel("graph")
    panel.show_colouring("actual")
    for index, run in enumerate(desk.document.runs):
        desk.session.view.select_run(index)
        desk.settle()
        if run.ops:
            assert run.target in panel.view.picture.colouring.label
            assert set(panel.view.picture.colouring.categories) == {report.actual for report in run.ops}


def test_the_selected_op_is_described_and_its_precision_can_be_set_there(desk):
    desk.traced()
    panel = desk.window.workbench.panel("graph")
    op_id = desk.document.graph.op_id[1]
    desk.session.view.select([op_id])
    desk.settle()
    assert panel._selected.text().startswith(op_id)
    panel.precision.setCurrentIndex(panel.precision.findData("bf16"))
    panel.precision.activated.emit(panel.precision.currentIndex())
    desk.settle()
    assert op_facts(desk.document).planned[op_id] == "bf16"
    panel.precision.setCurrentIndex(panel.precision.findData(""))
    panel.precision.activated.emit(panel.precision.currentIndex())
    assert desk.document.recipe.plan.rules == ()


def test_facts_of_the_same_document_are_made_once(desk):
    desk.ran()
    first = op_facts(desk.document)
    desk.session.view.select([desk.document.graph.op_id[1]])
    assert op_facts(desk.document) is first
    desk.session.plan.set_default_precision(Precision.FP16)
    assert op_facts(desk.document) is not first


def test_without_a_selected_run_the_chosen_one_is_looked_at(desk):
    desk.ran()
    desk.session.view.select_run(None)
    assert selected_run(desk.document) is desk.document.runs[desk.document.result.chosen]
