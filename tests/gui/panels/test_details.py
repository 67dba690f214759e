"""The details panel: what is known of the selected op, to read, follow and copy."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QTreeWidgetItem

from ace_studio.gui.ops.details import details_of
from ace_studio.records.messages import JobFailed, Phase, Progress
from tests.gui.comparing import two_plans


def lines(panel):
    roots = [panel.tree.topLevelItem(at) for at in range(panel.tree.topLevelItemCount())]
    return {(root.child(at).text(0), root.child(at).text(1)): root.child(at) for root in roots
            for at in range(root.childCount())}  # fmt: skip


def test_a_selected_op_is_described_and_enter_on_an_input_goes_there(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    shown = lines(panel)
    assert ("became", "fused into linear_1") in shown
    item = next(item for (name, _), item in shown.items() if name == "linear_1")
    panel.tree.setFocus()
    panel.tree.setCurrentItem(item)
    desk.bot.keyClick(panel.tree, Qt.Key.Key_Return)
    desk.settle()
    assert desk.document.selection.op_ids == ("linear_1",)
    assert panel.about.text() == "linear_1"


def test_lines_and_everything_can_be_copied(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    panel.tree.setCurrentItem(lines(panel)["name", "act_1"])
    panel.tree.setFocus()
    desk.bot.keyClick(panel.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "name\tact_1"
    desk.bot.mouseClick(panel.copy_button, Qt.MouseButton.LeftButton)
    assert "operator\taten.gelu.default" in QApplication.clipboard().text()


def test_a_folded_group_stays_folded_for_the_next_op(desk, compared_graph):
    panel = desk.panel("details")
    desk.session.view.select(("act_1",))
    desk.settle()
    panel.tree.topLevelItem(0).setExpanded(False)
    desk.session.view.select(("linear_1",))
    desk.settle()
    assert not panel.tree.topLevelItem(0).isExpanded()
    assert panel.tree.topLevelItem(1).isExpanded()


def test_what_differs_of_an_op_is_a_line_of_a_and_a_line_of_b(desk):
    found = two_plans(desk)
    table = found.merged.table
    desk.session.view.select([next(op_id for op_id, op in zip(table.op_id, table.op, strict=True) if "conv2d" in op)])
    panel = desk.panel("details")
    lines = {group.title: [(line.name, line.value) for line in group.lines] for group in panel.groups}
    at = lines["Precision"].index(("planned", f"A: {found.sides[0].recipe.plan.default}"))
    assert lines["Precision"][at + 1] == ("", "B: fp16")
    assert lines["Op"][1] == ("operator", "aten.conv2d.default")


def test_the_progress_of_a_job_does_not_describe_the_op_again(desk, compared_graph, monkeypatch):
    desk.session.view.select(("act_1",))
    panel = desk.panel("details")
    described = []

    def describe(document):
        described.append(document)
        return details_of(document)

    monkeypatch.setattr("ace_studio.gui.panels.details.details_of", describe)
    desk.do("run")
    described.clear()
    for fraction in (0.25, 0.5):
        desk.session.apply(Progress(job=desk.engine.requests[-1].job, phase=Phase.MEASURE, fraction=fraction))
        desk.settle()
    assert described == []
    assert panel.groups and not panel.values_button.isEnabled()
    desk.session.view.select(("linear_1",))
    desk.settle()
    assert described


def test_show_values_keeps_the_keyboard_while_the_engine_works(desk):
    panel = desk.traced().panel("details")
    desk.session.view.select(("linear_1",))
    desk.settle()
    panel.values_button.setFocus()
    desk.bot.waitUntil(panel.values_button.hasFocus)
    desk.engine.by_itself = False
    desk.bot.keyClick(panel.values_button, Qt.Key.Key_Space)
    desk.settle()
    assert not panel.values_button.isEnabled() and not panel.copy_button.hasFocus()
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=()))
    desk.settle()
    assert panel.values_button.hasFocus()


def test_copied_cells_hold_no_formula_of_a_stranger(desk):
    desk.open_example()
    panel = desk.panel("details")
    item = QTreeWidgetItem(panel.tree, ["group"])
    QTreeWidgetItem(item, ["module", '=HYPERLINK("http://x")']).setSelected(True)
    panel.copy()
    assert QApplication.clipboard().text() == 'module\t"\'=HYPERLINK(""http://x"")"'
