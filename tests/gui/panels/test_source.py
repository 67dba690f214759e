"""The source panel."""

from msgspec.structs import replace
from PySide6.QtCore import QPoint

from ace_studio.records.recipes.recipe import CaptureControl, ControlKind
from tests.gui.breaking import LEFT, PROBLEM
from tests.gui.graph_tables import partial_capture


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


def test_the_gutter_has_room_for_the_count_of_a_line_beside_its_number(desk):
    desk.traced()
    view = desk.panel("source").text
    narrow = view.gutter_width()
    view.set_marks({1: 999})
    assert view.gutter_width() == narrow
    view.set_marks({1: 123_456})
    assert view.gutter_width() == narrow + 3 * view.fontMetrics().horizontalAdvance("9")
    assert view._gutter.width() == view.gutter_width() == view.viewportMargins().left()
