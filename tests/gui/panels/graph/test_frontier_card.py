"""The card at the place where the capture stops: what happened, why, what helps, and buttons for it."""

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QLabel

from ace_studio.gui.ops.break_entries import Entry
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.graph import OpKind
from ace_studio.records.messages import FixRequest, JobFailed, ModelCaptured
from tests.gui.breaking import LEFT, PROBLEM, words_in
from tests.gui.cut_off import cut_texts
from tests.gui.graph_tables import partial_capture


def test_a_selected_seam_has_its_card_beside_it_and_the_card_follows(broken):
    graph = broken.window.workbench.panel("graph")
    assert graph.card.isHidden()
    broken.session.view.select_seam(1)
    broken.settle()
    assert graph.card.isVisible()
    assert graph.card.entry.mark == "2"
    before = graph.card.pos()
    graph.view.canvas.pan(-60.0, -20.0)
    assert graph.card.pos() != before
    assert graph.view.canvas.rect().contains(graph.card.geometry())
    graph.card.closed.emit()
    assert graph.card.isHidden()
    broken.session.view.select_seam(0)
    broken.settle()
    assert graph.card.isVisible()


def test_the_buttons_of_the_card_open_the_line_and_try_a_fix(broken):
    graph = broken.window.workbench.panel("graph")
    broken.session.view.select_seam(1)
    broken.settle()
    broken.bot.mouseClick(graph.card.open_button, LEFT)
    broken.settle()
    assert broken.panel("source").text.textCursor().blockNumber() + 1 == 20
    broken.bot.mouseClick(graph.card.try_button, LEFT)
    broken.settle()
    assert isinstance(broken.engine.requests[-1], FixRequest)
    assert broken.window.workbench.panel("breaks").isVisible()


def test_in_a_low_window_the_card_leaves_sentences_out_and_cuts_none(desk):
    desk.running()
    problem = replace(
        PROBLEM, what="forward() of DigitsNet chooses a branch by a tensor's value", remedy="use where " * 9
    )
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(problem,)))
    desk.window.resize(1000, 640)
    desk.settle()
    card = desk.window.workbench.panel("graph").card
    assert not cut_texts(card)
    assert card._what.isVisible() and card.copy_button.isVisible() and not card._remedy.isVisible()
    assert "use where" in card.toolTip()
    desk.window.resize(1400, 1000)
    desk.settle()
    assert card._remedy.isVisible()


def test_without_any_graph_the_reason_stands_where_the_graph_would(desk):
    desk.trusted()
    desk.engine.by_itself = False
    desk.do("trace")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(PROBLEM,)))
    desk.settle()
    graph = desk.window.workbench.panel("graph")
    assert graph.lone_card.isVisible()
    assert {"Not captured", "A branch depends on a value.", "W.", "→ R."} <= words_in(graph.lone_card)
    panel = desk.panel("breaks")
    assert list(panel.model.columns[0].values) == ["!"]
    desk.do("trace")
    assert not graph.lone_card.isVisible()


@pytest.mark.parametrize("has_graph", [False, True])
def test_a_card_in_a_low_graph_shows_no_words_over_each_other(desk, has_graph):
    desk.traced() if has_graph else desk.trusted()
    desk.engine.by_itself = False
    desk.do("trace")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(PROBLEM,)))
    desk.window.resize(900, 600)
    desk.settle()
    rows = desk.window.workbench._rows
    rows.setSizes([180 if has_graph else 100, rows.height() - 180])
    desk.settle()
    graph = desk.window.workbench.panel("graph")
    card = graph.card if has_graph else graph.lone_card
    shown = [each for each in card.findChildren(QLabel) if each.isVisible() and each.text()]
    assert card._what in shown
    for each in shown:
        assert each.height() >= each.heightForWidth(each.width())


def test_where_the_model_itself_does_not_run_no_fix_is_offered_and_its_line_is_marked(desk):
    desk.trusted()
    source = desk.panel("source")
    desk.settle()
    assert "def make_model" in source.text.toPlainText()
    assert source._count.text() == "Not traced yet"
    desk.engine.by_itself = False
    desk.do("trace")
    wrong = Problem(code=ErrorCode.USER_CODE, what="forward() raised", where="model.py:12")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(wrong,)))
    desk.settle()
    desk.settle()
    assert source.text.badges[12].text == "!"
    card = desk.window.workbench.panel("graph").lone_card
    assert card.isVisible()
    assert not card.try_button.isVisible()
    assert not desk.panel("breaks").try_button.isVisible()


def test_what_was_captured_before_a_failure_is_shown_with_the_reason_at_its_end(desk):
    table, capture = partial_capture(2)
    cut = replace(table, kind=tuple(OpKind.OP if kind is OpKind.OUTPUT else kind for kind in table.kind))
    desk.captured(cut, replace(capture, rung=""))
    desk.do("trace")
    job = desk.engine.requests[-1].job
    desk.session.apply(ModelCaptured(job=job, fingerprint="g", capture=replace(capture, rung=""), graph=cut))
    desk.session.apply(JobFailed(job=job, problems=(PROBLEM,)))
    desk.settle()
    graph = desk.window.workbench.panel("graph")
    assert graph.card.isVisible()
    assert graph._anchor._row == len(cut) - 1
    assert graph.card._heading.text() == "Not captured"
    # The next trace fails without any graph: the old one stays, and the card says that it is old.
    desk.do("trace")
    desk.session.apply(JobFailed(job=desk.engine.requests[-1].job, problems=(PROBLEM,)))
    desk.settle()
    assert graph.card._heading.text() == "Not captured this time; the graph is from an earlier trace"
    assert graph._anchor._row == -1


def test_a_place_without_a_line_offers_no_line(desk):
    assert Entry(mark="!", title="t", file="m.py").place == ""
