"""The breaks of A and of B in one list."""

from msgspec.structs import replace

from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.results import CaptureReport, GraphBreak
from tests.gui.breaking import click_row, words_in
from tests.gui.comparing import press, two_records
from tests.session.fake_engine_link import result

RECIPE = Recipe(model=ModelChoice(source="net.py", entry="make"))
PRINTS = GraphBreak(file="/models/net.py", line=10, reason="a print", code="print(x)", ops_left_eager=2)
BRANCH = GraphBreak(file="/models/net.py", line=20, reason="a branch", code="if x.sum() > 0:", ops_left_eager=3)
CALLS = GraphBreak(file="/models/net.py", line=30, reason="a call", code="other(x)")


def record(*breaks):
    capture = CaptureReport(rung="partial", ops=9, seconds=1.0, graph_breaks=breaks)
    return RECIPE, replace(result(), capture=capture)


def test_breaks_are_new_gone_or_the_same_by_place_and_reason(desk):
    two_records(desk, record(PRINTS, BRANCH), record(replace(PRINTS, line=12, count=3, ops_left_eager=6), CALLS))
    panel = desk.panel("breaks")
    columns = {each.title: list(each.values) for each in panel.model.columns}
    assert columns["line"] == ["net.py:12", "net.py:30", "net.py:20"]
    assert columns["difference"] == ["differs: met, ops eager", "differs: only in B", "differs: only in A"]
    click_row(desk, panel, 0)
    assert "A: 2 ops left eager\nB: reached 3 times, 6 ops left eager" in words_in(panel)
    assert desk.document.graph is None
    assert not panel.graph_button.isVisible(), "there is no graph of these runs"
    click_row(desk, panel, 2)
    assert panel._heading.text() == "Break 2  ·  net.py:20  ·  differs: only in A"
    assert not panel.graph_button.isVisible(), "the graph is of B"
    assert desk.document.selection.seam is None
    assert not panel.try_button.isEnabled()
    press(desk, "Swap")
    columns = {each.title: list(each.values) for each in panel.model.columns}
    assert columns["difference"] == ["differs: met, ops eager", "differs: only in B", "differs: only in A"]
    assert columns["line"] == ["net.py:10", "net.py:20", "net.py:30"]
    press(desk, "Back to the present")
    assert "difference" not in [each.title for each in panel.model.columns]


def test_the_same_breaks_in_a_copy_are_no_difference(desk):
    two_records(desk, record(PRINTS), record(replace(PRINTS, file="/copy/net.py")))
    panel = desk.panel("breaks")
    assert list(panel.model.columns[0].values) == [""]


def test_without_breaks_the_panel_says_so(desk):
    two_records(desk, record(), (RECIPE, result()))
    panel = desk.panel("breaks")
    assert panel._empty._text.text() == "B was not traced, and the other one has no place where capture stops."
