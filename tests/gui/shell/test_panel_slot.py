"""The place of a panel: what is hidden is brought up to date when it is seen."""

from PySide6.QtGui import QColor

from ace_studio.gui.panels.charts import ChartsPanel
from ace_studio.gui.panels.plan import PlanPanel
from ace_studio.gui.style.theme import THEMES


def test_a_panel_that_was_hidden_when_the_theme_changed_is_seen_in_the_new_colours(desk):
    desk.traced()
    desk.session.view.select([desk.document.graph.op_id[1]])
    source = desk.panel("source")
    desk.settle()
    fills = [extra.format.background().color() for extra in source.text.extraSelections()]
    assert fills == [QColor(THEMES["dark"].accent_fill)]
    desk.panel("capture")
    desk.settle()
    desk.session.set_setting("theme", "light")
    desk.settle()
    assert desk.panel("source") is source
    desk.settle()
    fills = [extra.format.background().color() for extra in source.text.extraSelections()]
    assert fills == [QColor(THEMES["light"].accent_fill)]


def test_charts_and_the_plan_are_made_before_anybody_looks_and_filled_when_somebody_does(desk):
    desk.open_example()
    desk.settle()
    assert desk.window.findChildren(ChartsPanel) == []
    assert desk.window.findChildren(PlanPanel) == []
    desk.ran()
    desk.settle()
    (charts,) = desk.window.findChildren(ChartsPanel)
    (plan,) = desk.window.findChildren(PlanPanel)
    assert list(charts.views) == ["overview"]
    assert charts.views["overview"].points == []
    assert desk.panel("charts") is charts
    desk.settle()
    assert [point.name for point in charts.views["overview"].points]
    assert desk.panel("plan") is plan
