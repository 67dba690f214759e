"""The graph panel: the graph view, the colouring, and the precision of the selected ops."""

from __future__ import annotations

from ace_studio.gui.ops.facts import op_facts


def test_without_a_graph_the_panel_says_what_to_do_next(desk):
    desk.open_example()
    panel = desk.window.workbench.panel("graph")
    assert panel._empty._title.text() == "Nothing has run yet"
    assert "trusted" in panel._empty._text.text()
    desk.session.trust.trust_file()
    desk.settle()
    assert panel._empty._title.text() == "Not traced yet"


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
