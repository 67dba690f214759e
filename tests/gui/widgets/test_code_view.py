"""Colours of code."""

import ast
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from ace_studio.gui.style.theme import Theme
from ace_studio.gui.widgets.code_view import Badge, CodeView, coloured_spans

_CODE = """def forward(x):
    '''Return what is in x,
    if it is not 3 "words" # here
    '''
    return x + 1  # for 'all
"""


def test_words_inside_a_docstring_of_many_lines_are_a_string_and_no_keywords():
    spans = coloured_spans(_CODE)
    assert [kind for line in (1, 2, 3) for _, _, kind in spans[line]] == ["string"] * 3
    assert spans[4] == [(4, 6, "word"), (15, 1, "number"), (18, 10, "comment")]


def test_an_apostrophe_in_a_comment_and_an_open_string_do_not_colour_the_next_line():
    assert coloured_spans("# don't\nx = 'open\nif y: pass")[2] == [(0, 2, "word"), (6, 4, "word")]


def test_every_string_python_finds_in_this_file_is_one_string_here():
    text = Path(__file__).read_text("utf-8")
    spans = coloured_spans(text)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and type(node.value) is str]
    starts = {(node.lineno - 1, node.col_offset) for node in found}
    coloured = {(line, start) for line, parts in spans.items() for start, _, kind in parts if kind == "string"}
    assert starts <= coloured


def test_columns_after_a_letter_outside_the_basic_plane_are_those_of_qt():
    assert coloured_spans("'\U0001f600' if")[0] == [(0, 4, "string"), (5, 2, "word")]


def test_the_view_shows_the_lines_of_a_docstring_in_one_colour(qtbot, qapp: QApplication):
    theme = Theme(qapp, "dark")
    view = CodeView(theme)
    qtbot.addWidget(view)
    view.show_code(_CODE)
    formats = view.document().findBlockByNumber(2).layout().formats()
    assert [form.format.foreground().color().name() for form in formats] == [theme.colours.good.lower()]
    view.show_code("if x: pass")
    assert view.document().firstBlock().layout().formats()[0].length == 2
    theme.setParent(None)


def test_the_pointer_tells_about_a_line_with_a_badge_and_nothing_about_others(qtbot, qapp, monkeypatch):
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, _widget: told.append(text))
    view = CodeView(Theme(qapp, "dark"))
    qtbot.addWidget(view)
    view.show_code("a = 1\nb = 2\nc = 3\n", path="m.py")
    view.set_badges({2: Badge(text="1", tip="Break 1: a branch")})
    view.show()
    qtbot.waitExposed(view)
    for line in (1, 2):
        block = view.document().findBlockByNumber(line - 1)
        y = round(view.blockBoundingGeometry(block).translated(view.contentOffset()).center().y())
        place = QPoint(30, y)
        qapp.sendEvent(view.viewport(), QHelpEvent(QEvent.Type.ToolTip, place, view.viewport().mapToGlobal(place)))
    assert told == ["Break 1: a branch"]
