"""The ops by sensitivity, the most sensitive first, and the scan that measures it."""

from msgspec.structs import replace
from PySide6.QtCore import Qt

from ace_studio.gui.charts.sensitivity import SensitivityChart
from ace_studio.records.messages import SensitivityFound, SensitivityRequest
from tests.gui.charting import open_chart, place_of
from tests.gui.run_results import REPORT, TABLE, ranked_sensitivity


def test_the_most_sensitive_op_comes_first_and_a_click_selects_it(desk, charts):
    view = open_chart(desk, charts, "sensitivity")
    assert view.ranked[0] == ("stem_linear", 12.0)
    desk.bot.mouseClick(view.chart.widget.viewport(), Qt.MouseButton.LeftButton, pos=place_of(view.chart, 1.0, 5.0))
    desk.settle()
    assert desk.document.selection.op_ids == ("stem_norm",)


def test_a_scan_is_asked_for_shows_its_progress_and_what_comes_and_can_be_cancelled(desk):
    desk.captured(TABLE, REPORT)
    charts = desk.panel("charts")
    view = charts.show_chart("sensitivity")
    assert isinstance(view, SensitivityChart)
    desk.bot.mouseClick(view.scan_button, Qt.MouseButton.LeftButton)
    desk.settle()
    request = desk.engine.requests[-1]
    assert isinstance(request, SensitivityRequest)
    assert view.progress.isVisible()
    part = ranked_sensitivity(TABLE)[:4]
    desk.session.apply(
        SensitivityFound(job=request.job, fingerprint="f", ops=part, samples_done=1, samples=4, forwards=3.0)
    )
    desk.settle()
    assert len(view.ranked) == 4
    assert "not complete" in view._note.text()
    desk.bot.keyClick(view, Qt.Key.Key_Escape)
    assert desk.engine.cancelled == [request.job]


def test_the_most_sensitive_ops_are_kept_at_fp32_by_a_rule(desk, charts):
    view = open_chart(desk, charts, "sensitivity")
    view.count.setValue(2)
    desk.bot.mouseClick(view.keep_button, Qt.MouseButton.LeftButton)
    desk.settle()
    rules = [(rule.match, str(rule.precision)) for rule in desk.document.recipe.plan.rules]
    assert rules == [("module:stem", "fp32")]
    desk.do("undo")
    assert desk.document.recipe.plan.rules == ()


def test_the_precision_of_the_bars_is_never_cut(desk):
    desk.captured(TABLE, REPORT)
    view = desk.panel("charts").show_chart("sensitivity")
    desk.bot.mouseClick(view.scan_button, Qt.MouseButton.LeftButton)
    desk.settle()
    job = desk.engine.requests[-1].job
    for precisions in (("bf16", "fp16"), ("bf16", "int8-dynamic")):
        ops = tuple(replace(one, precision=each) for one in ranked_sensitivity(TABLE)[:2] for each in precisions)
        found = SensitivityFound(job=job, fingerprint="f", ops=ops, samples_done=1, samples=4, forwards=3.0)
        desk.session.apply(found)
        desk.settle()
    assert view.precision.isVisible()
    assert view.precision.width() >= view.precision.fontMetrics().horizontalAdvance("int8-dynamic") + 22
