"""Breaks in the window: the list, the card on the frontier, the source, and fixes that are tried."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QPushButton

from ace_studio.gui.ops.break_entries import Entry, is_same_place, parse_place, sentence
from ace_studio.gui.panels.breaks.fix_card import FixCard
from ace_studio.records.errors import ErrorCode, Problem
from ace_studio.records.fixes import CaptureOutcome, FixKind, FixReport, FixStatus
from ace_studio.records.graph import OpKind
from ace_studio.records.messages import FixRequest, FixTried, JobFailed, JobFinished, ModelCaptured, Phase, Progress
from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from ace_studio.records.results import CaptureReport
from tests.gui.graph_tables import layered_table, partial_capture

LEFT = Qt.MouseButton.LeftButton
FILE = "/models/net.py"
CONTROL = CaptureControl(function="net:pick", treat_as=ControlKind.NONSTRICT_TRACE)
PATCH = f"--- {FILE}\n+++ {FILE}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
PROBLEM = Problem(
    code=ErrorCode.NOT_CAPTURED, what="a branch depends on a value", why="w", remedy="r", where=f"{FILE}:7, Net"
)


def fix(**more):
    values = {
        "kind": FixKind.NONSTRICT_TRACE,
        "title": "mark pick",
        "status": FixStatus.GREEN,
        "file": FILE,
        "line": 10,
    }
    return FixReport(**values | more)


def words_in(widget):
    return {each.text() for each in widget.findChildren(QLabel) if each.isVisibleTo(widget)}


def click_row(desk, panel, at):
    place = panel.table.visualRect(panel.model.index(panel.model.view_row(at), 1)).center()
    desk.bot.mouseClick(panel.table.viewport(), LEFT, pos=place)
    desk.settle()


def press(desk, parent, text):
    found = next(each for each in parent.findChildren(QPushButton) if each.text() == text)
    desk.bot.mouseClick(found, LEFT)
    desk.settle()


@pytest.fixture
def broken(desk):
    """A capture in four subgraphs, two of whose three breaks are one line, and one subgraph of which stays eager."""
    return desk.captured(*partial_capture(4, lines=(10, 20, 10), eager=(2,)))


# --- the list ---


def test_breaks_are_listed_by_line_with_cost_and_the_tab_counts_them(broken):
    panel = broken.panel("breaks")
    columns = {each.title: list(each.values) for each in panel.model.columns}
    assert columns["#"] == ["1", "2", "p2"]
    assert columns["line"] == ["net.py:10", "net.py:20", "net.py:7"]
    assert columns["met"][:2] == [2, 1]
    assert columns["ops eager"] == [2, 3, 6]
    tabs = broken.window.workbench._slots["breaks"].parent().parent()
    assert "Breaks (2)" in [tabs.tabText(at) for at in range(tabs.count())]


def test_a_click_in_the_list_selects_the_seam_and_its_line(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 1)
    assert broken.document.selection.seam == 1
    assert broken.window.workbench.panel("graph").view.selected_ops == ("break_1",)
    source = broken.panel("source")
    assert source.text.textCursor().blockNumber() + 1 == 20


def test_a_click_on_a_seam_of_the_graph_selects_it_in_the_list(broken):
    panel = broken.panel("breaks")
    view = broken.window.workbench.panel("graph").view
    row = view.picture.rows_of(["break_1"])[0]
    scene, camera = view.picture.scene, view.canvas.camera
    x, y = camera.to_screen(scene.x[row] + scene.width[row] / 2, scene.y[row] + scene.height[row] / 2)
    broken.bot.mouseClick(view.canvas, LEFT, pos=QPoint(round(x), round(y)))
    broken.settle()
    assert panel._entry.mark == "2"
    assert panel.table.selectionModel().selectedRows()[0].row() == 1
    assert "net.py:20" in panel._heading.text()


def test_a_double_click_zooms_the_graph_to_the_seam(broken):
    panel = broken.panel("breaks")
    view = broken.window.workbench.panel("graph").view
    before = view.canvas.camera.scale
    place = panel.table.visualRect(panel.model.index(1, 1)).center()
    broken.bot.mouseClick(panel.table.viewport(), LEFT, pos=place)
    broken.bot.mouseDClick(panel.table.viewport(), LEFT, pos=place)
    broken.settle()
    assert view.canvas.camera.scale > before
    row = view.picture.rows_of(["break_1"])[0]
    x, y = view.canvas.camera.to_screen(view.picture.scene.x[row], view.picture.scene.y[row])
    assert 0 < x < view.canvas.width()
    assert 0 < y < view.canvas.height()


def test_an_eager_subgraph_is_listed_and_selects_its_ops(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 2)
    assert set(broken.document.selection.op_ids) == {op for op in broken.document.graph.op_id if op.startswith("p2_")}
    assert any("It draws random numbers" in text for text in words_in(panel))


def test_everything_known_of_a_place_can_be_copied(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    press(broken, panel, "Copy")
    text = QApplication.clipboard().text()
    for words in ("Break 1", "if scores.max()", "met 2 times", "use torch.where", f"{FILE}:10", "Unsupported"):
        assert words in text


def test_a_whole_capture_says_that_there_are_no_breaks(desk):
    desk.captured(layered_table(3), CaptureReport(rung="export", ops=9, seconds=1.0))
    assert desk.panel("breaks")._empty._title.text() == "Captured whole: no breaks"


# --- fixes ---


def test_try_fix_asks_the_engine_about_the_line_and_shows_what_came_of_it(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    broken.bot.mouseClick(panel.try_button, LEFT)
    broken.settle()
    request = broken.engine.requests[-1]
    assert isinstance(request, FixRequest)
    assert (request.file, request.line) == (FILE, 10)
    assert not panel.try_button.isEnabled()
    assert "busy" in panel.try_button.toolTip()
    broken.session.apply(Progress(job=request.job, phase=Phase.FIX, detail="mark pick"))
    before, after = CaptureOutcome(rung="partial", breaks=2, ops=24), CaptureOutcome(rung="dynamo", ops=30)
    green = fix(control=CONTROL, before=before, after=after, inputs_compared=3, seconds=1.0, note="mind the seed")
    lost = fix(kind=FixKind.WHERE, title="use where", status=FixStatus.WRONG, problem=PROBLEM, line=10)
    broken.session.apply(FixTried(job=request.job, fix=lost))
    broken.session.apply(FixTried(job=request.job, fix=green))
    broken.settle()
    assert "Trying a fix … mark pick" in words_in(panel)
    broken.session.apply(JobFinished(job=request.job))
    broken.settle()
    cards = sorted(panel.findChildren(FixCard), key=lambda card: card.y())
    assert [card.fix for card in cards] == [green, lost]
    said = words_in(cards[0])
    assert "Works" in said
    assert "Equal to eager on 3 inputs; took 1.0 s." in said
    assert "Before: 2 breaks, 24 ops captured (partial). After: no breaks, 30 ops captured (dynamo)." in said
    assert "Mind the seed." in said
    assert "Traced, but not equal to eager" in words_in(cards[1])


def test_a_control_that_works_goes_into_the_recipe_with_one_click(broken):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    broken.session.apply(FixTried(job=broken.engine.requests[-1].job, fix=fix(control=CONTROL)))
    broken.settle()
    press(broken, panel, "Add to recipe")
    assert broken.document.recipe.capture.controls == (CONTROL,)
    assert any(each.text() == "In the recipe" and not each.isEnabled() for each in panel.findChildren(QPushButton))
    broken.do("undo")
    assert broken.document.recipe.capture.controls == ()


def test_a_patch_is_shown_copied_and_saved_and_the_source_stays(broken, tmp_path, monkeypatch):
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    patched = fix(kind=FixKind.WHERE, title="use where", patch=PATCH)
    broken.session.apply(FixTried(job=broken.engine.requests[-1].job, fix=patched))
    broken.settle()
    (card,) = panel.findChildren(FixCard)
    assert card.diff.isVisible()
    assert "+x = 2" in card.diff.toPlainText()
    press(broken, card, "Copy patch")
    assert QApplication.clipboard().text() == PATCH
    path = tmp_path / "fix.patch"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    press(broken, card, "Save patch…")
    assert path.read_text(encoding="utf-8") == PATCH
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "no" / "where"), ""))
    press(broken, card, "Save patch…")
    assert broken.document.problems[-1].what == "The patch could not be saved"


# --- the card on the frontier ---


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


def test_without_any_graph_the_reason_stands_where_the_graph_would(desk):
    desk.open_example()
    desk.session.trust.trust_file()
    desk.settle()
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


def test_where_the_model_itself_does_not_run_no_fix_is_offered_and_its_line_is_marked(desk):
    desk.open_example()
    desk.session.trust.trust_file()
    desk.settle()
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
    assert "the graph is from before" in graph.card._heading.text()
    assert graph._anchor._row == -1


# --- the source ---


def test_the_gutter_marks_breaks_by_number_and_problems_with_a_sign(broken):
    broken.session.report(replace(PROBLEM, where="net.py:30"))
    source = broken.panel("source")
    assert {line: (one.text, one.is_break) for line, one in source.text.badges.items()} == {
        7: ("!", False), 10: ("1", True), 20: ("2", True), 30: ("!", False),
    }  # fmt: skip
    assert "use torch.where" in source.text.badges[10].tip


def test_a_click_in_the_gutter_selects_the_break(broken):
    source = broken.panel("source")
    source.text.scroll_to(20)
    block = source.text.document().findBlockByNumber(19)
    top = source.text.blockBoundingGeometry(block).translated(source.text.contentOffset()).top()
    broken.bot.mouseClick(source.text._gutter, LEFT, pos=QPoint(20, round(top) + 5))
    broken.settle()
    assert broken.document.selection.seam == 1


def test_a_function_in_the_source_is_marked_from_its_menu(desk):
    table, capture = partial_capture(2)
    desk.captured(table, capture, text="def pick(x):\n    return x\n\nclass Net:\n    pass\n")
    source = desk.panel("source")
    texts = [action.text() for action in source.menu_at(2).actions()]
    assert "Mark pick as nonstrict_trace" in texts
    assert "Mark pick as leaf" not in texts
    assert "Mark Net as leaf" in [action.text() for action in source.menu_at(4).actions()]
    next(one for one in source.menu_at(2).actions() if one.text().endswith("disable")).trigger()
    desk.settle()
    assert desk.document.recipe.capture.controls == (CaptureControl(function="net:pick", treat_as=ControlKind.DISABLE),)
    assert desk.window.workbench.panel("capture").isVisible()


# --- words ---


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("model.py:3, layers.0", ("model.py", 3)),
        ("C:\\m\\a.py:12", ("C:\\m\\a.py", 12)),
        ("model.py", None),
        ("", None),
        ("a:b.py:4:1", ("a:b.py", 4)),
    ],
)
def test_a_place_is_read_from_its_words(where, expected):
    assert parse_place(where) == expected


def test_places_are_the_same_line_with_or_without_the_folder():
    assert is_same_place(("net.py", 3), (FILE, 3))
    assert not is_same_place(("et.py", 3), (FILE, 3))
    assert not is_same_place((FILE, 0), (FILE, 0))


def test_sentences_keep_names_of_code():
    assert sentence("the code stops") == "The code stops."
    assert sentence("torch.cond cannot") == "torch.cond cannot."
    assert sentence("") == ""


def test_a_place_without_a_line_offers_no_line(desk):
    assert Entry(mark="!", title="t", file="m.py").place == ""
