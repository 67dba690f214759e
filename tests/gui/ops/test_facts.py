"""Facts about every op: the plan's precision, and what the selected run did."""

from ace_studio.gui.ops.facts import op_facts, prepare_result, reports_by_op, selected_run
from ace_studio.records.recipes.plan import Precision
from tests.gui.run_results import REPORT, TABLE, result_of, show_result


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


def test_the_search_in_the_graph_finds_ops_by_time_and_actual_precision(desk):
    desk.ran()
    view = desk.window.workbench.panel("graph").view
    run = selected_run(desk.document)
    times = {report.id: report.latency_ms for report in run.ops if report.latency_ms}
    slow = {op_id for op_id, time in times.items() if time > sum(times.values()) / 10}
    assert slow
    assert set(view.search("time>10%")) == slow
    low = {report.id for report in run.ops if report.actual == "int8-static"}
    assert set(view.search("precision:int8")) == low != set()
    assert view.search("time>10% precision:fp8") == ()


def test_what_the_reading_thread_prepares_of_a_result_is_what_the_window_shows(desk):
    desk.captured(TABLE, REPORT)
    result = result_of(TABLE)
    prepare_result(result)
    made = reports_by_op(result.runs[result.chosen])
    show_result(desk, TABLE, result)
    assert op_facts(desk.document).reports is made
