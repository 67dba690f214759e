"""The breaks panel: where the capture stops, what that costs, and the fixes tried."""

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QPushButton

from ace_studio.gui.panels.breaks.fix_card import FixCard
from ace_studio.records.fixes import CaptureOutcome, FixKind, FixStatus
from ace_studio.records.messages import FixRequest, FixTried, JobFinished, Phase, Progress
from ace_studio.records.results import CaptureReport
from tests.gui.breaking import CONTROL, FILE, LEFT, PROBLEM, click_row, fix, press, words_in
from tests.gui.graph_tables import layered_table


def test_breaks_are_listed_by_line_with_cost_and_the_tab_counts_them(broken):
    panel = broken.panel("breaks")
    columns = {each.title: list(each.values) for each in panel.model.columns}
    assert columns["#"] == ["1", "2", "p2"]
    assert columns["line"] == ["net.py:10", "net.py:20", "net.py:7"]
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
    for words in ("Break 1", "if scores.max()", "reached 2 times", "use torch.where", f"{FILE}:10", "Unsupported"):
        assert words in text


def test_a_whole_capture_says_that_there_are_no_breaks(desk):
    desk.captured(layered_table(3), CaptureReport(rung="export", ops=9, seconds=1.0))
    assert desk.panel("breaks")._empty._title.text() == "Captured whole: no breaks"


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


def test_the_first_fix_that_works_is_scrolled_to_with_what_can_be_done_with_it(broken):
    broken.window.resize(1280, 760)
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    job = broken.engine.requests[-1].job
    broken.session.apply(FixTried(job=job, fix=fix(status=FixStatus.FAILED, title="in vain")))
    broken.settle()
    lines = [f"-old {at}\n+new {at}" for at in range(40)]
    long = "\n".join(["--- a/net.py", "+++ b/net.py", "@@ -1,40 +1,40 @@", *lines])
    broken.session.apply(FixTried(job=job, fix=fix(kind=FixKind.WHERE, patch=long)))
    broken.session.apply(JobFinished(job=job))
    broken.settle()
    save = next(one for one in panel.findChildren(QPushButton) if one.text() == "Save patch…")
    broken.bot.waitUntil(lambda: not save.visibleRegion().isEmpty(), timeout=2000)
    assert panel.try_button.property("role") == "", "what works is the thing to do now"


def test_in_a_small_window_neither_the_list_nor_a_fix_is_cut(broken):
    broken.window.resize(960, 540)
    panel = broken.panel("breaks")
    click_row(broken, panel, 0)
    panel._try()
    job = broken.engine.requests[-1].job
    patch = f"--- {FILE}\n+++ {FILE}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    long = fix(kind=FixKind.WHERE, title="compute both sides and choose with torch.where", patch=patch, note="mind it")
    broken.session.apply(FixTried(job=job, fix=long))
    broken.settle()
    assert panel.try_button.text() == "Trying …"
    assert panel._doing.y() < panel._code.y(), "said beside the buttons, above the code"
    broken.session.apply(JobFinished(job=job))
    broken.settle()
    for each in (panel.table, panel._detail):
        assert each.horizontalScrollBar().maximum() == 0
    assert panel.try_button.text() == "Try again"
