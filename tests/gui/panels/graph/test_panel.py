"""The graph panel: the graph view, the colouring, and the precision of the selected ops."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from ace_studio.gui.ops.facts import op_facts
from ace_studio.records.messages import RunRequest, TraceRequest
from ace_studio.records.places import example_recipe


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


def test_in_a_small_window_the_numbers_of_breaks_and_of_selected_ops_are_whole(broken):
    broken.window.resize(960, 540)
    broken.settle()
    panel = broken.window.workbench.panel("graph")
    assert panel._breaks.text() == "2 breaks"
    assert panel._breaks.property("role") == "warn"
    assert panel._breaks.width() >= panel._breaks.sizeHint().width()
    assert panel._selected.text().startswith("24 ops in 4 subgraphs")
    broken.session.view.select([op_id for op_id in broken.document.graph.op_id if op_id.startswith("p0_")])
    broken.settle()
    assert not panel._breaks.isVisible()
    words = panel._selected.text()
    assert words.endswith("ops selected")
    assert panel._selected.width() >= panel._selected.fontMetrics().horizontalAdvance(words)


def test_what_is_started_here_before_the_file_was_looked_at_waits_for_it(desk):
    desk.engine.by_itself = False
    desk.session.files.open_path(str(example_recipe()))
    desk.settle()
    panel = desk.window.workbench.panel("graph")
    assert desk.document.file is None
    starts = [one for one in panel._empty.findChildren(QPushButton) if one.isVisible()]
    assert starts and all(one.isEnabled() for one in starts)
    desk.bot.mouseClick(starts[0], Qt.MouseButton.LeftButton)
    desk.settle()
    assert desk.document.wished is not None
    assert not [one for one in desk.engine.requests if isinstance(one, (TraceRequest, RunRequest))]
